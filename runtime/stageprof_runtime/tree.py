"""The stacks that were looked at, as a tree: each place in it is told once, looks by its number.

One tree belongs to one ring, for each recording must be whole by itself. It is bounded: a stack
that would need another place when `MOST` are known is cut where it leaves what is known, and so is
one that is deeper than `DEPTH`; how many looks that befell is told. Only threads of ours that look
come here, some 20 to 50 times a second; no hook does.

A function is known by its name, file and first line; one of the user's stands in the tree once for
each of its lines that was seen running. Functions and places are numbers, for every object that the
garbage collector counts brings its next look nearer, in the user's process: while Dask divides a
DataFrame of eight million rows it looks at a list of as many for 60 ms, each time.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any, Final

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
#: Functions and lines that are ever known in a process, 500 bytes each; all more are one.
KNOWN: Final = 50_000
#: Characters of a name and of a file's name.
NAME: Final = 200
FILE: Final = 500

_OURS: Final = ("/stageprof_runtime/", "<stageprof_runtime")
#: Between name, file and line in the text of a spot; the text of all spots beyond `KNOWN`.
_SEP: Final = "\0"
_OTHERS: Final = f"others{_SEP}{_SEP}0"
#: Bits of a line's number, and of a spot's, in a number of both.
_BITS: Final = 32

#: A function, or one line of a function of the user's, by its number; there is one for each.
Spot = int

_count = itertools.count()
#: text of a spot -> its number, and back
_spots: dict[str, Spot] = {}
_texts: dict[Spot, str] = {}
#: By identity, for hashing code reads all of it; the code is kept, so that its number stays its.
#: -1 - the spot where it is not all that is to be said: of ours, or of the user's.
_codes: dict[int, int] = {}
_kept: list[CodeType] = []
_ours: set[Spot] = set()
#: spot of a function of the user's << _BITS | line -> the spot of that line
_at: dict[int, Spot] = {}


def spot_of(name: str, file: str, line: int) -> Spot:
    """A function, or a line of one, by what it is called."""
    text = _SEP.join((name[:NAME], file[:FILE], str(line)))
    if text not in _spots and len(_spots) >= KNOWN:
        text = _OTHERS
    spot = _spots.get(text)
    if spot is None:
        made = next(_count)
        _texts[made] = text  # before anybody can have its number
        spot = _spots.setdefault(text, made)
    return spot


def described(spot: Spot) -> list[Any]:
    """Name, file and line of a spot."""
    name, file, line = _texts[spot].rsplit(_SEP, 2)
    return [name, file, int(line)]


def is_ours(file: str) -> bool:
    """Whether a file is of this package."""
    return any(part in file.replace("\\", "/") for part in _OURS)


def met() -> list[CodeType]:
    """The code that looks have met lately."""
    return list(_kept)


def _remember(code: CodeType) -> int:
    if len(_codes) >= CODES:
        _kept.clear()  # in the opposite order of that below, for other threads look as well
        _codes.clear()
    file = code.co_filename
    spot = spot_of(code.co_qualname, file, code.co_firstlineno)
    if is_ours(file) and spot != _spots.get(_OTHERS):  # those that are not kept apart are anybody's
        _ours.add(spot)
    plain = kind(file) != USER and spot not in _ours
    known = _codes[id(code)] = spot if plain else -1 - spot
    _kept.append(code)
    return known


def _line(spot: Spot, line: int) -> Spot:
    """The spot of a line of a function of the user's."""
    which = spot << _BITS | line
    there = _at.get(which)
    if there is None:
        name, file, _ = described(spot)
        there = _at[which] = spot_of(name, file, line)
    return there


def spots(frames: Sequence[FrameType]) -> list[Spot]:
    """A stack given from the innermost frame outward, as spots from the outermost inward.

    Our own wrappers are left out, unless it is ours that runs.
    """
    found: list[Spot] = []
    for frame in reversed(frames):
        code = frame.f_code
        known = _codes.get(id(code))
        if known is None:
            known = _remember(code)
        if known >= 0:
            found.append(known)
        elif -1 - known not in _ours:
            found.append(_line(-1 - known, frame.f_lineno or 0))
        elif frame is frames[0]:
            found.append(-1 - known)
    return found


class Tree:
    """The places that the looks of one ring have seen, and what was seen there since last told."""

    def __init__(self, most: int = MOST, depth: int = DEPTH) -> None:
        self._most = most
        self._depth = depth
        #: (1 + place << _BITS | spot called there) -> place
        self._inner: dict[int, int] = {}
        #: keys of the last of those, not told yet
        self._untold: list[int] = []
        self._sums: dict[tuple[int, str, str, int], list[int]] = {}
        #: looks whose stack was cut, since last told
        self._cut = 0
        # Lookers and shipper share it; no thread of the program's ever waits for it.
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._inner)

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
            untold, self._untold = self._untold, []
            first = len(self._inner) - len(untold)
            sums, self._sums = self._sums, {}
            cut, self._cut = self._cut, 0
        rows = [self._row(first + i, key) for i, key in enumerate(untold)]
        rows.extend((FLAME, t, *which, *total) for which, total in sums.items())
        if cut:
            rows.append((SAMPLE, t, "stacks.cut", float(cut)))
        return rows

    def _place(self, stack: Sequence[Spot]) -> int:
        place = -1
        for spot in stack[: self._depth]:
            key = place + 1 << _BITS | spot
            inner = self._inner.get(key)
            if inner is None:
                if len(self._inner) >= self._most:
                    self._cut += 1
                    return place
                inner = self._inner[key] = len(self._inner)
                self._untold.append(key)
            place = inner
        self._cut += len(stack) > self._depth
        return place

    @staticmethod
    def _row(place: int, key: int) -> Row:
        spot = key & (1 << _BITS) - 1
        return NODE, place, (key >> _BITS) - 1, *described(spot)


__all__ = ["Spot", "Tree", "described", "is_ours", "met", "spot_of", "spots"]
