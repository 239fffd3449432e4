"""The boxes of a flame graph: what was seen, by stage and task prefix, then frame by frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from stageprof_collectors.profiles.flame import Flame
from stageprof_collectors.profiles.nodes import Frame, is_library
from stageprof_collectors.profiles.sides import Side
from stageprof_collectors.profiles.whose import of_c
from stageprof_collectors.text import safe

#: Boxes that a page holds; of more, the narrowest are left out.
MOST: Final = 20_000
_LIMIT: Final = 300

#: What a box is: a stage, a task prefix, a function of the user's or one of a library's.
STAGE, PREFIX, USER, LIBRARY = range(4)


class Box(NamedTuple):
    """A box, as the browser draws it."""

    #: the box around it, -1 for none
    parent: int
    depth: int
    #: seconds from the left, and its width
    left: float
    seconds: float
    #: seconds in it alone
    own: float
    looks: int
    #: seconds of Python, of native code and of waiting
    shares: tuple[float, float, float]
    name: int
    #: index of its file in the texts, 0 for none
    file: int
    line: int
    kind: int


@dataclass
class _Node:
    parent: int
    name: str
    file: str = ""
    line: int = 0
    kind: int = LIBRARY
    own: float = 0.0
    looks: int = 0
    shares: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    inner: list[int] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return sum(self.shares)


@dataclass(frozen=True)
class Boxes:
    """The boxes of a page.

    Attributes:
        boxes: each after the one around it.
        texts: what names and files index.
        seconds: of all looks; `looks`: how many they are.
        left_out: boxes too narrow to be kept.
    """

    boxes: list[Box]
    texts: list[str]
    seconds: float
    looks: int
    left_out: int

    def columns(self) -> dict[str, Any]:
        """As the browser takes them: an array for each field; times in microseconds."""
        wanted = [
            b._replace(left=_us(b.left), seconds=_us(b.seconds), own=_us(b.own)) for b in self.boxes
        ]
        found = dict(zip(Box._fields, map(list, zip(*wanted, strict=True)), strict=True))
        found["shares"] = [[_us(share) for share in box.shares] for box in wanted]
        return {**found, "texts": self.texts, "looked": self.looks}


def _us(seconds: float) -> int:
    return round(seconds * 1e6)


def boxes(sides: Iterable[Side], most: int = MOST) -> Boxes:
    """The boxes of the looks of a recording, the longest first at each level."""
    nodes = _nodes(sides)
    kept = _kept(nodes, most)
    texts: dict[str, int] = {"": 0}
    made: list[Box] = []
    for node, parent, left in _placed(nodes, kept):
        depth = made[parent].depth + 1 if parent >= 0 else 0
        name = texts.setdefault(safe(node.name, limit=_LIMIT), len(texts))
        file = texts.setdefault(safe(node.file, limit=_LIMIT), len(texts))
        shares = node.shares[0], node.shares[1], node.shares[2]
        figures = left, node.seconds, node.own, node.looks, shares
        made.append(Box(parent, depth, *figures, name, file, node.line, node.kind))
    tops = [node for node in nodes if node.parent < 0]
    whole, looks = sum(top.seconds for top in tops), sum(top.looks for top in tops)
    return Boxes(made, list(texts), whole, looks, len(nodes) - len(kept))


def _nodes(sides: Iterable[Side]) -> list[_Node]:
    """Stages, prefixes and frames as one tree."""
    nodes: list[_Node] = []
    known: dict[tuple[int, str], int] = {}

    def group(around: int, name: str, kind: int) -> int:
        at = known.get((around, name))
        if at is None:
            at = known[around, name] = len(nodes)
            nodes.append(_Node(around, name, kind=kind))
        return at

    for side in sides:
        around = group(-1, side.stage, STAGE)
        if side.prefix:
            around = group(around, side.prefix, PREFIX)
        nodes.extend(_of_flame(side.flame, around, len(nodes)))
    for i in range(len(nodes) - 1, -1, -1):  # looks of a node are those within it, too
        node = nodes[i]
        if node.parent >= 0:
            outer = nodes[node.parent]
            outer.inner.append(i)
            outer.looks += node.looks
            outer.shares = [a + b for a, b in zip(outer.shares, node.shares, strict=True)]
    return nodes


def _of_flame(flame: Flame, around: int, first: int) -> Iterator[_Node]:
    """The nodes of a flame that have time, with what was spent right in each."""
    at: dict[int, int] = {}
    parents, frames = flame.nodes.parent, flame.nodes.frames
    own = flame.own.T.tolist()
    for i in np.flatnonzero(flame.total.any(axis=0)).tolist():
        at[i] = first + len(at)
        frame, parent = frames[i], int(parents[i])
        yield _Node(
            at[parent] if parent >= 0 else around, frame.name, frame.file, max(frame.line, 0),
            LIBRARY if _of_library(frame) else USER,
            sum(own[i]), int(flame.looks[i]), own[i],
        )  # fmt: skip


def _of_library(frame: Frame) -> bool:
    return of_c(frame.file, frame.line) or is_library(frame.file)


def _kept(nodes: list[_Node], most: int) -> set[int]:
    """The widest nodes; one that is kept has all around it kept, for none is wider than those."""
    order = sorted(range(len(nodes)), key=lambda i: (-nodes[i].seconds, i))
    return set(order[:most])


def _placed(nodes: list[_Node], kept: set[int]) -> Iterator[tuple[_Node, int, float]]:
    """Each kept node with the index of its box's parent and its left edge; parents come first."""
    tops = [i for i in kept if nodes[i].parent < 0]
    waiting = [(tops, -1, 0.0)]
    made = 0
    while waiting:
        inner, parent, left = waiting.pop()
        for i in sorted(inner, key=lambda i: (-nodes[i].seconds, i)):
            if i not in kept:
                continue
            yield nodes[i], parent, left
            waiting.append((nodes[i].inner, made, left))
            left += nodes[i].seconds
            made += 1


__all__ = ["LIBRARY", "PREFIX", "STAGE", "USER", "Box", "Boxes", "boxes"]
