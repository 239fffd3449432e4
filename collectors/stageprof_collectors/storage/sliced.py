"""A recording that is too large for memory, some of its runs at a time.

The file is read once to learn which runs each batch tells of, then twice more for each slice: the
first time to learn by how much workers' clocks are off (see `Timeline.bounds`), which only all
runs together tell, the second time for its tasks. What is written to it after it was read once is
left out. What a slice takes is what its batches take: the rows of a batch are kept whole, so that a
slice begins with some runs of the one before.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

import pandas as pd

from stageprof_collectors.account.causality import Bounds
from stageprof_collectors.account.timeline import Timeline
from stageprof_collectors.garbage import no_collection
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.columns import widen
from stageprof_collectors.storage.file import read_frames
from stageprof_collectors.storage.shipment import Part, Shipment
from stageprof_collectors.storage.store import Store
from stageprof_runtime.event import Place

#: Runs of one slice; with what belongs to them they take some 800 MB.
RUNS: Final = 500_000
#: Tables whose rows each belong to a run.
_OF_RUNS: Final = ("assign", "finish", "run", "ongoing", "want")
#: What else a table of tasks is made of: clocks, the region, and who held the GIL.
_BESIDE: Final = ("mark", "ping", "hold")
_SAMPLE: Final = "sample"
_NO_LIMIT: Final = 1 << 62

#: Whether the rows of a table in a batch of a place are kept.
Keep = Callable[[Place, str, Part], bool]


class Slice(NamedTuple):
    """Runs from a number on, and below another."""

    first: int
    end: int


class _Some(Store):
    """A store of those rows that `keep` says; of all other batches only where they came from."""

    def __init__(self, keep: Keep) -> None:
        super().__init__(max_memory=_NO_LIMIT)
        self._keep = keep

    def _add_parts(self, s: Shipment, place: int, span: tuple[int, int]) -> None:
        kept = {name: part for name, part in s.parts.items() if self._keep(s.place, name, part)}
        super()._add_parts(s._replace(parts=kept), place, span)


class _Piece(Recording):
    """The recording of a slice, with the clocks of the whole."""

    def __init__(self, store: Store, path: str, bounds: Bounds) -> None:
        super().__init__(store, path)
        self._bounds = bounds

    @cached_property
    def timeline(self) -> Timeline:
        """All events on one clock."""
        return Timeline(self.store, self._bounds)


class Sliced:
    """The tasks of a recording at `path`, in slices."""

    def __init__(self, path: str | os.PathLike[str], *, runs: int = RUNS) -> None:
        self._path = path
        #: numbers of the first and last run of each part of a table of runs, in the file's order
        self._ranges = array("q")
        self._assigned: list[tuple[int, int]] = []
        #: processes whose GIL was watched: of them no samples are needed
        self._watched: set[tuple[str, int]] = set()
        #: where the file ended, in bytes, when it was read once; 0 before
        self._end = 0
        whole = self._read(self._note)
        #: whether the recording was ended in good order, and what is wrong if not
        self.complete, self.incomplete_reason = whole.complete, whole.incomplete_reason
        #: what its first frame says
        self.header = whole.header
        self.slices = list(_slices(self._assigned, runs))

    def tasks(self) -> Iterator[pd.DataFrame]:
        """`Recording.tasks()` of each slice; together they are those of the whole."""
        bounds = self._bounds()
        for each in self.slices:
            frame = _Piece(self._slice(each), os.fspath(self._path), bounds).tasks()
            mine = frame["run"].between(each.first, each.end, inclusive="left")
            yield frame[mine].reset_index(drop=True)

    def _bounds(self) -> Bounds:
        """The bounds of all slices together."""
        whole: Bounds = {}
        for each in self.slices:
            for place, (least, most) in Timeline(self._slice(each), {}).bounds().items():
                before, latest = whole.get(place, (least, most))
                known = [bound for bound in (most, latest) if bound is not None]
                whole[place] = max(least, before), min(known, default=None)
        return whole

    def _slice(self, which: Slice) -> Store:
        ranges = iter(self._ranges)

        def keep(place: Place, name: str, _: Part) -> bool:
            if name in _OF_RUNS:
                first, last = next(ranges), next(ranges)
                return first < which.end and last >= which.first
            unwatched = name == _SAMPLE and (place.host, place.pid) not in self._watched
            return unwatched or name in _BESIDE

        return self._read(keep)

    def _note(self, place: Place, name: str, part: Part) -> bool:
        """Which runs a part tells of; nothing is kept."""
        if name in _OF_RUNS:
            numbers = widen(name, [Part(part.rows, {"run": part.columns["run"]})])["run"]
            first, last = int(numbers.min()), int(numbers.max())
            self._ranges.extend((first, last))
            if name == "assign":
                self._assigned.append((first, part.rows))
        elif name == "hold":
            self._watched.add((place.host, place.pid))
        return False

    def _read(self, keep: Keep) -> Store:
        store = _Some(keep)
        with read_frames(self._path, max_memory=_NO_LIMIT) as frames, no_collection():
            for found in frames:
                store._take(found)
                if frames.offset == self._end:
                    break
        self._end = frames.offset
        store._finish(frames)
        return store


def _slices(assigned: list[tuple[int, int]], runs: int) -> Iterator[Slice]:
    """Where to cut, so that about so many runs lie between: at the beginning of a part.

    The first begins with those that were under way when the recording began.
    """
    first, rows = -_NO_LIMIT, 0
    for number, more in sorted(assigned):
        if rows >= runs and number > first:
            yield Slice(first, number)
            first, rows = number, 0
        rows += more
    if assigned:
        yield Slice(first, _NO_LIMIT)
