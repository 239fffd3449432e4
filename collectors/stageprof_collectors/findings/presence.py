"""Which runs of some places were there for a part of some stretch of time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from stageprof_collectors.account.timeline import Ints, Timeline


class Presence:
    """The runs of some places, in order, so that few are looked at for each stretch."""

    def __init__(self, timeline: Timeline, places: Iterable[int]) -> None:
        runs = timeline.runs
        rows = np.concatenate([timeline.at.of(place) for place in places])
        self._rows = rows[np.argsort(runs["start"][rows], kind="stable")]
        self._start, self._stop = runs["start"][self._rows], runs["stop"][self._rows]
        #: when the last of the runs up to each one ended
        self._reach = np.maximum.accumulate(self._stop)

    def during(self, start: int, stop: int, part: float) -> Ints:
        """Rows of the runs that were there for at least a part (above 0) of [start, stop)."""
        first = int(np.searchsorted(self._reach, start, side="right"))
        some = slice(first, int(np.searchsorted(self._start, stop)))
        both = np.minimum(self._stop[some], stop) - np.maximum(self._start[some], start)
        found: Ints = self._rows[some][both >= part * (stop - start)]
        return found
