"""Stacks with their C frames, as the watch tells of them, in the words of looks from within.

py-spy knows the plain name of a function and the line that runs. Looks from within have its full
name, and of code that is not the user's the first line only: those are looked up in the code that
they have met.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from types import CodeType
from typing import Any, Final

from stageprof_runtime.lines import USER, kind
from stageprof_runtime.stem import function_at, in_task
from stageprof_runtime.tree import CODES, Spot, is_ours, met, spot_of

#: Name, file and line; of a C frame a symbol, its library, and 0.
Frame = tuple[str, str, int]
#: From when to when a thread was last seen there, ns, and the thread.
Look = tuple[int, int, int]

#: A line of each function that no look from within has met, by file and name.
_lines: Final[dict[tuple[str, str], int]] = {}


def stacks_of(said: dict[str, Any]) -> Iterator[tuple[list[Spot], list[Look]]]:
    """The different stacks of tasks, from their functions inward, with the looks at each.

    Args:
        said: as `unwinding.Trace.told` has it.
    """
    looks = defaultdict[int, list[Look]](list)
    for start, stop, thread, node in said["rows"]:
        looks[node].append((start, stop, thread))
    names = _Names()
    for node, found in looks.items():
        stack = _of_task(_stack(said, node))
        if stack:
            yield names.spots(stack), found


def _stack(said: dict[str, Any], node: int) -> list[Frame]:
    """The frames of a node, the innermost first."""
    found: list[Frame] = []
    while node >= 0:
        node, frame = said["nodes"][node]
        found.append(said["frames"][frame])
    return found


def _of_task(stack: list[Frame]) -> list[Frame]:
    """What of a stack is the task's; nothing where none runs."""
    python = [at for at, (_, _, line) in enumerate(stack) if line]
    files = [stack[at][1] for at in python]
    if not any(map(in_task, files)):
        return []
    return stack[: python[function_at(files)] + 1]


class _Names:
    """Functions by what py-spy calls them."""

    def __init__(self) -> None:
        self._codes = defaultdict[tuple[str, str], list[CodeType]](list)
        for code in met():
            for name in {code.co_name, code.co_qualname}:
                self._codes[code.co_filename, name].append(code)

    def spots(self, stack: list[Frame]) -> list[Spot]:
        """A stack given innermost first, as spots from the outermost inward, without ours."""
        inner = stack[0]
        kept = [f for f in stack if f is inner or not (f[2] and is_ours(f[1]))]
        return [self._spot(*frame) for frame in reversed(kept)]

    def _spot(self, name: str, file: str, line: int) -> Spot:
        if not line:
            return spot_of(name, file, 0)
        within = [c for c in self._codes.get((file, name), ()) if c.co_firstlineno <= line]
        code = max(within, key=lambda c: c.co_firstlineno, default=None)
        full = code.co_qualname if code else name
        if kind(file) == USER:
            return spot_of(full, file, line)
        return spot_of(full, file, code.co_firstlineno if code else _some_line(file, name, line))


def _some_line(file: str, name: str, line: int) -> int:
    """The line at which a function was seen first: it is to be one function, not many."""
    if len(_lines) >= CODES:
        _lines.clear()
    return _lines.setdefault((file, name), line)
