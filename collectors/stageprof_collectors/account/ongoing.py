"""Which runs were under way at an instant, without a look at all that ever were."""

from __future__ import annotations

from typing import Final

import numpy as np

from stageprof_collectors.account.attempts import Columns, Ints

#: So many runs are passed over at once where all of them had ended.
_CHUNK: Final = 1024
_NEVER: Final = np.iinfo(np.int64).max


class Ongoing:
    """Some of the runs of a timeline.

    Args:
        runs: see `Timeline.runs`.
        rows: which of them.
    """

    def __init__(self, runs: Columns, rows: Ints) -> None:
        self._rows = rows[np.argsort(runs["assigned"][rows], kind="stable")]
        self._assigned = runs["assigned"][self._rows]
        ends = runs["finished"][self._rows]
        self._end = np.where(ends > 0, ends, _NEVER)
        firsts = np.arange(0, len(rows), _CHUNK)
        self._last = np.maximum.reduceat(self._end, firsts) if len(rows) else self._end

    def at(self, t: int) -> Ints:
        """The rows of those that were assigned before `t` and had not ended."""
        until = int(np.searchsorted(self._assigned, t))
        chunks = np.flatnonzero(self._last[: -(-until // _CHUNK)] >= t)
        at = (chunks[:, None] * _CHUNK + np.arange(_CHUNK)).ravel()
        at = at[at < until]
        return np.sort(self._rows[at[self._end[at] >= t]])
