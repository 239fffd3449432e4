"""A flame as text for other tools: folded stacks, one on a line ("a;b;c 12", in microseconds)."""

from __future__ import annotations

from functools import cache
from pathlib import PurePath

from stageprof_collectors.profiles.flame import Flame
from stageprof_collectors.profiles.nodes import Frame
from stageprof_collectors.text import safe

#: Characters of one frame.
LIMIT = 300


def collapsed(flame: Flame, *around: str) -> str:
    """The stacks as `flamegraph.pl` and its relatives read them, the longest first.

    Args:
        flame: what was seen.
        around: what each stack begins with, from the outside in: a stage, a prefix.
    """
    outer = [_part(name) for name in around]
    text = cache(_text)  # a frame is on many stacks
    weighed = [
        (max(round(took.seconds * 1e6), 1), ";".join((*outer, *map(text, stack))))
        for stack, took in flame.stacks.items()
    ]
    return "".join(f"{stack} {weight}\n" for weight, stack in sorted(weighed, reverse=True))


def label(frame: Frame) -> str:
    """A frame in few words: `function file:line`."""
    return safe(f"{frame.name} {place(frame.file, frame.line)}".rstrip(), limit=LIMIT)


def place(file: str, line: int) -> str:
    """Where a function is, in short; frames of C have no line."""
    return f"{PurePath(file).name}:{line}" if file and line else PurePath(file).name


def _text(frame: Frame) -> str:
    return _part(label(frame))


def _part(text: str) -> str:
    """A frame's text without what ends a frame there."""
    return safe(text, limit=LIMIT).replace(";", ":") or "?"


__all__ = ["collapsed", "label"]
