"""The ends of runs in order: which was the last up to an instant."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import numpy as np

from stageprof_collectors.account.timeline import LOCAL, Ints, Timeline
from stageprof_collectors.storage.rows import Rows


class Ends:
    """Those of the runs of one timeline; a cluster's, and a local scheduler's."""

    def __init__(self, timeline: Timeline) -> None:
        self._t = timeline
        self._of_graph: dict[int, tuple[Ints, Ints]] = {}
        self._without: dict[frozenset[int], tuple[Ints, Ints]] = {}

    def last(self, t: int) -> int:
        """The last run of a cluster that ended at `t` or before; -1 if none did."""
        return _at_or_before(self._cluster, t)

    def last_of(self, thread: int, t: int) -> int:
        """The same of a local scheduler's that a thread had asked for."""
        return _at_or_before(self._local[thread], t)

    def last_of_graph(self, row: int, t: int) -> int:
        """The same of those of a graph, an index in `Timeline.graphs`."""
        if row not in self._of_graph:
            self._of_graph[row] = self._in_order(self._rows.of(row))
        return _at_or_before(self._of_graph[row], t)

    def last_but(self, others: frozenset[int], t: int) -> int:
        """The last run of a cluster that ended at `t` or before, and is of none of some graphs."""
        if others not in self._without:
            times, rows = self._cluster
            kept = ~np.isin(self._t.graph_rows[rows], [*others])
            self._without[others] = times[kept], rows[kept]
        return _at_or_before(self._without[others], t)

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self._t.graph_rows)

    @cached_property
    def _cluster(self) -> tuple[Ints, Ints]:
        return self._in_order(np.flatnonzero(self._t.runs["run"] < LOCAL))

    @cached_property
    def _local(self) -> defaultdict[int, tuple[Ints, Ints]]:
        """By the thread that asked for them; others may meanwhile."""
        local = np.flatnonzero(self._t.runs["run"] >= LOCAL)
        asked = {g.number: g.submit.thread for g in self._t.graphs if g.submit}
        numbers = self._t.owners[local]
        threads = np.array([asked.get(number, 0) for number in numbers.tolist()], np.int64)
        # Whose a run is may not be known, where a row is missing: anybody may have waited for it.
        lanes = {
            t: self._in_order(local[(threads == t) | (threads == 0)])
            for t in np.unique(threads).tolist()
        }
        whole = self._in_order(local)
        return defaultdict(lambda: whole, lanes)

    def _in_order(self, rows: Ints) -> tuple[Ints, Ints]:
        """Ends of runs in order, and the runs; without those that never ended."""
        runs = self._t.runs
        rows = rows[runs["finished"][rows] > 0]
        rows = rows[np.argsort(runs["finished"][rows], kind="stable")]
        return runs["finished"][rows], rows


def _at_or_before(ends: tuple[Ints, Ints], t: int) -> int:
    times, rows = ends
    i = int(np.searchsorted(times, t, side="right")) - 1
    return int(rows[i]) if i >= 0 else -1
