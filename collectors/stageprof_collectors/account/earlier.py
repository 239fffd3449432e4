"""What each thread ran before: a run may have had to wait for it."""

from __future__ import annotations

import numpy as np

from stageprof_collectors.account.timeline import Ints, Timeline


class Earlier:
    """The run before another on its thread; a place's are put in order when one is asked for.

    A path visits some thousand runs of many millions.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._runs = timeline.runs
        self._at = timeline.at
        #: place -> for each of its rows the run before it, or -1
        self._known: dict[int, Ints] = {}

    def of(self, run: int) -> int:
        """The run that its thread did right before, and had ended; -1 if there is none."""
        place = int(self._runs["wplace"][run])
        rows = self._at.of(place)
        i = int(np.searchsorted(rows, run))
        if i >= len(rows) or rows[i] != run:
            return -1
        if place not in self._known:
            self._known[place] = self._before(rows)
        return int(self._known[place][i])

    def _before(self, rows: Ints) -> Ints:
        runs = {name: self._runs[name][rows] for name in ("thread", "start", "stop", "seen")}
        order = np.lexsort((runs["start"], runs["thread"]))
        a, b = order[:-1], order[1:]
        same = (runs["seen"][a] == 1) & (runs["seen"][b] == 1) & (runs["thread"][a] != 0)
        same &= runs["thread"][a] == runs["thread"][b]
        same &= runs["stop"][a] <= runs["start"][b]
        before = np.full(len(rows), -1, np.int64)
        before[b[same]] = rows[a[same]]
        return before
