"""What py-spy saw, or why it saw nothing, as rows of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stageprof_runtime.batch import Row
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import MARK, STOOD
from stageprof_runtime.lines import DASK, USER, kind
from stageprof_runtime.measured import OFF
from stageprof_runtime.stem import in_task
from stageprof_runtime.tree import is_ours

#: What sees C frames, as coverage calls it where they are not seen.
_C_FRAMES: Final = "native.install"


def unseen(why: str) -> Row:
    """What tells the coverage that there are no C frames."""
    return MARK, now_ns(), OFF, f"{_C_FRAMES}: {why}"[:300]


def stood(said: dict[str, Any]) -> Iterator[Row]:
    """Where threads were that held the GIL; `said` as `spying.stacks` has it."""
    labels = [label_of(stack) for stack in said["stacks"]]
    for start, stop, thread, number in said["rows"]:
        yield STOOD, start, stop, thread, -1, labels[number]


def label_of(stack: list[list[Any]]) -> str:
    """The innermost function of the user's, or else of anybody's: "file:line function".

    Of each frame of the stack, outermost first: function, file, line.
    """
    mine = [frame for frame in stack if kind(frame[1]) == USER and not frame[1].startswith("<")]
    name, file, line = (mine or _called(stack))[-1]
    return f"{file}:{line} {name}"


def _called(stack: list[list[Any]]) -> list[list[Any]]:
    """A stack as far as Dask's function that ours stands in for; all of it, where ours is no such.

    Ours that runs a task is no part of what runs there, and our threads are ours throughout.
    """
    end = len(stack)
    while end and is_ours(stack[end - 1][1]):
        end -= 1
    around = stack[end:] and in_task(stack[end][1])
    return stack[:end] if end and not around and kind(stack[end - 1][1]) == DASK else stack
