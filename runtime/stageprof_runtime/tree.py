"""The stacks that were looked at, as a tree: each place in it is told once, looks by its number.

One tree belongs to one ring, for each recording must be whole by itself. It is bounded: a stack
that would need another place when `MOST` are known is cut where it leaves what is known, and so is
one that is deeper than `DEPTH`; how many looks that befell is told. Only threads of ours that look
come here, some 20 to 50 times a second; no hook does.

A function is known by its name, file and first line; one of the user's stands in the tree once for
each of its lines that was seen running.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Final

from stageprof_runtime.batch import Row
from stageprof_runtime.event import FLAME, NODE, SAMPLE
from stageprof_runtime.lines import USER, kind

#: Places in one tree; with their keys some 300 bytes each.
MOST: Final = 20_000
#: Frames of one stack, from the outermost inward: deeper recursion tells nothing new.
DEPTH: Final = 200
#: Sums that wait for the shipper, half a second of looks; further prefixes go under "".
SUMS: Final = 20_000
#: Codes that are remembered. A task's function is unpickled anew for each task.
CODES: Final = 20_000
#: Characters of a name and of a file's name.
NAME: Final = 200
FILE: Final = 500

_OURS: Final = ("/stageprof_runtime/", "<stageprof_runtime")


class Spot:
    """A function, or one line of a function of the user's; there is one object for each."""

    __slots__ = ("file", "line", "name")

    def __init__(self, name: str, file: str, line: int) -> None:
        self.name = name
        self.file = file
        self.line = line


class Function:
    """A function: its spot, or if it is the user's those of its lines that were seen."""

    __slots__ = ("lines", "ours", "spot")

    def __init__(self, name: str, file: str, line: int) -> None:
        self.spot = Spot(name[:NAME], file[:FILE], line)
        self.ours = any(part in file.replace("\\", "/") for part in _OURS)
        self.lines: dict[int, Spot] | None = {} if kind(file) == USER else None

    def at(self, line: int) -> Spot:
        """Where the function stands when it is at a line."""
        if self.lines is None:
            return self.spot
        spot = self.lines.get(line)
        if spot is None:
            spot = self.lines.setdefault(line, Spot(self.spot.name, self.spot.file, line))
        return spot


_functions: dict[tuple[str, str, int], Function] = {}
#: By identity, for hashing code reads all of it; the code is kept, so that its number stays its.
#: The spot is None where the function must be asked.
_codes: dict[int, tuple[Spot | None, Function, CodeType]] = {}


def _remember(code: CodeType) -> tuple[Spot | None, Function, CodeType]:
    if len(_codes) >= CODES:
        _codes.clear()
        _functions.clear()
    key = code.co_qualname, code.co_filename, code.co_firstlineno
    function = _functions.get(key)
    if function is None:
        function = _functions.setdefault(key, Function(*key))
    plain = function.lines is None and not function.ours
    known = _codes[id(code)] = function.spot if plain else None, function, code
    return known


def spots(frames: Sequence[FrameType]) -> list[Spot]:
    """A stack given from the innermost frame outward, as spots from the outermost inward.

    Our own wrappers are left out, unless it is ours that runs.
    """
    found: list[Spot] = []
    for frame in reversed(frames):
        code = frame.f_code
        known = _codes.get(id(code)) or _remember(code)
        spot = known[0]
        if spot is not None:
            found.append(spot)
        elif not known[1].ours or frame is frames[0]:
            found.append(known[1].at(frame.f_lineno or 0))
    return found


class _Place:
    """A place in the tree, and those that are called from it."""

    __slots__ = ("called", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.called: dict[Spot, _Place] = {}


class Tree:
    """The places that the looks of one ring have seen, and what was seen there since last told."""

    def __init__(self, most: int = MOST, depth: int = DEPTH) -> None:
        self._most = most
        self._depth = depth
        #: what the outermost places are called from
        self._root = _Place(-1)
        self._places = 0
        self._untold: list[Row] = []
        self._sums: dict[tuple[int, str, str, int], list[int]] = {}
        #: looks whose stack was cut, since last told
        self._cut = 0
        # Lookers and shipper share it; no thread of the program's ever waits for it.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._places

    def place(self, stack: Sequence[Spot]) -> int:
        """The number of the place of a stack; -1 if nothing of it is in the tree."""
        with self._lock:
            return self._place(stack)

    def look(self, step: int, name: str, how: str, stack: Sequence[Spot], ns: int) -> None:
        """Add a look at a stack, which stands for so many ns; see `event.FLAME`."""
        with self._lock:
            key = step, name, how, self._place(stack)
            if len(self._sums) >= SUMS and key not in self._sums:
                key = step, "", how, key[3]
            total = self._sums.get(key)
            if total is None:
                total = self._sums[key] = [0, 0]
            total[0] += 1
            total[1] += ns

    def take(self, t: int) -> list[Row]:
        """The rows of what is new: places come before the looks that are there."""
        with self._lock:
            rows, self._untold = self._untold, []
            sums, self._sums = self._sums, {}
            cut, self._cut = self._cut, 0
        rows.extend((FLAME, t, *which, *total) for which, total in sums.items())
        if cut:
            rows.append((SAMPLE, t, "stacks.cut", float(cut)))
        return rows

    def _place(self, stack: Sequence[Spot]) -> int:
        place = self._root
        for spot in stack[: self._depth]:
            inner = place.called.get(spot)
            if inner is None:
                if self._places >= self._most:
                    self._cut += 1
                    return place.number
                inner = self._add(place, spot)
            place = inner
        self._cut += len(stack) > self._depth
        return place.number

    def _add(self, place: _Place, spot: Spot) -> _Place:
        added = place.called[spot] = _Place(self._places)
        self._places += 1
        self._untold.append((NODE, added.number, place.number, spot.name, spot.file, spot.line))
        return added


__all__ = ["Spot", "Tree", "spots"]
