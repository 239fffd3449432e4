"""What each run needed of other runs, from the rows of DEPEND and the causes of ASSIGN.

Where nothing is said a run needed its cause and nothing else; see `event.DEPEND`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints, Timeline


class Depends(NamedTuple):
    """The needs of all runs, by their rows in `Timeline.runs`.

    Run i needed `on[first[i]:first[i + 1]]`. `cause[i]` is the run whose end led to it (-1: a
    graph, or unknown), and `queued[i]` whether it did not need that run's result: it waited for
    the thread that became free.
    """

    first: Ints
    on: Ints
    cause: Ints
    queued: NDArray[np.bool_]

    @property
    def user(self) -> Ints:
        """Of each of `on` the run that needed it."""
        found: Ints = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        return found


def depends(timeline: Timeline) -> Depends:
    """The needs of a timeline's runs; what was not recorded is left out."""
    runs, table = timeline.runs, timeline.store.table("depend")
    n = len(runs["run"])
    cause = np.where(runs["cause"] >= 0, timeline.runs_of(runs["cause"], runs["place"]), -1)
    cause = np.where(cause < np.arange(n), cause, -1)  # what led to a run came before it
    row = timeline.runs_of(table["run"], table["place"])
    on = np.where(table["on"] >= 0, timeline.runs_of(table["on"], table["place"]), -1)
    told = np.zeros(n, np.bool_)
    told[row[row >= 0]] = True
    alone = np.flatnonzero(~told & (cause >= 0))
    row, on = np.concatenate([row, alone]), np.concatenate([on, cause[alone]])
    kept = (row >= 0) & (on >= 0)
    row, on = row[kept], on[kept]
    # A result that was made again later was not the one that was needed.
    ended = np.where(runs["finished"] > 0, runs["finished"], runs["stop"])
    before = (ended[on] <= runs["assigned"][row]) & (on < row)
    row, on = row[before], on[before]
    needed = np.zeros(n, np.bool_)
    needed[row[on == cause[row]]] = True
    first, on = by_row(row, on, n)
    return Depends(first, on, cause, (cause >= 0) & ~needed)


def by_row(row: Ints, on: Ints, n: int) -> tuple[Ints, Ints]:
    """Pairs (row, on) as the slices of each of `n` rows: where they begin, and the `on`s."""
    order = np.argsort(row, kind="stable")
    first = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=n)[:n], out=first[1:])
    return first, on[order]
