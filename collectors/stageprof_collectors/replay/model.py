"""A recording as waits: for each run what it waits for, and how long each of its parts took.

    what it needed has ended -> lead -> received -> fetch -> ready -> (waits for a thread, which
    is a result and no input) -> pre -> start -> compute -> stop -> lag -> the scheduler knows

All times are ns from the region's start, on its clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import given_back
from stageprof_collectors.account.depend import by_row
from stageprof_collectors.account.graph import Graph
from stageprof_collectors.account.thread import Threads, threads
from stageprof_collectors.account.timeline import LOCAL, Ints, Timeline
from stageprof_runtime.event import STATUS

_FAILED = STATUS.index("erred"), STATUS.index("lost")

Bools = NDArray[np.bool_]


class Waits(NamedTuple):
    """What each node waits for: `on[first[i]:first[i + 1]]`; nodes are runs, then graphs."""

    first: Ints
    on: Ints


@dataclass
class Parts:
    """How long the parts of each run took, ns."""

    lead: Ints
    fetch: Ints
    pre: Ints
    compute: Ints
    lag: Ints
    #: from its thread's becoming free to its start, for one that is there all the while
    turn: Ints


class Model:
    """The runs and graphs of a timeline, prepared once for many replays.

    Args:
        timeline: what was recorded.
        apart: rows of runs that take no thread of a pool: they ran on the region's own thread, or
            left their thread while they waited for tasks that they had launched.
    """

    def __init__(self, timeline: Timeline, apart: Ints) -> None:
        self._t = timeline
        self.origin = timeline.region.start
        self.n = len(timeline.runs["run"])
        self.graphs: list[Graph] = timeline.graphs
        self._number = {(g.place, g.number): i for i, g in enumerate(self.graphs)}
        self._read()
        occupying = ~self._gone
        occupying[apart] = False
        #: rows in the order of their start; what took no time was before what began then and stayed
        self.order: Ints = np.lexsort((self.stop, self.start))
        self._occupying = occupying

    def _read(self) -> None:
        """Instants of each run, put right where they are not what a replay means by them."""
        runs = self._t.runs
        local = runs["run"] >= LOCAL
        #: taken back before it ran: it takes no thread, and its end is known to the scheduler
        self._gone: Bools = given_back(runs)
        self.assigned: Ints = runs["assigned"]
        # A local scheduler has its loop and its threads in one process: nothing is sent.
        here = local | self._gone
        self.received: Ints = np.where(here, runs["assigned"], runs["received"])
        self.ready: Ints = np.where(here, runs["assigned"], runs["ready"])
        self.start: Ints = np.where(self._gone, runs["assigned"], runs["start"])
        self.stop: Ints = np.where(self._gone, runs["assigned"], runs["stop"])
        self.local: Bools = local
        self.finished: Ints = np.maximum(
            np.where(runs["finished"] > 0, runs["finished"], runs["stop"]), self.stop
        )

    @cached_property
    def threads(self) -> Threads:
        """The threads that there were, and which of them each run took."""
        return threads(self._t, self.order, self._occupying)

    # -- what waits for what ------------------------------------------------------------------

    @cached_property
    def _root(self) -> Ints:
        """Of each run the graph that led to it straight, or -1."""
        runs = self._t.runs
        found = np.full(self.n, -1, np.int64)
        rows = np.flatnonzero((runs["cause"] < 0) & (runs["cause"] > -(2**60)))
        places, causes = runs["place"][rows].tolist(), runs["cause"][rows].tolist()
        numbers = [self._number.get((p, -1 - c), -1) for p, c in zip(places, causes, strict=True)]
        found[rows] = numbers
        return found

    @property
    def owner(self) -> Ints:
        """Of each run the graph that it is of; -1: unknown."""
        return self._t.graph_rows

    @cached_property
    def taken(self) -> Ints:
        """When the scheduler began to place each graph's tasks."""
        found = np.array([g.taken for g in self.graphs], np.int64)
        first = np.full(len(self.graphs), 2**62, np.int64)
        roots = np.flatnonzero(self._root >= 0)
        np.minimum.at(first, self._root[roots], self.assigned[roots])
        arrived = np.array([g.arrived for g in self.graphs], np.int64)
        return np.maximum(np.where(first < 2**62, first, found), arrived)

    def at_scheduler(self, graph: Graph) -> bool:
        """Whether a cluster's scheduler took a graph, and not one of the program's own process."""
        return self._t.store.places[graph.place].role == "scheduler"

    @cached_property
    def fixed(self) -> Waits:
        """As it was: a run that waited for a thread waits for the run that made it free."""
        needs = self._t.depends
        queued = np.flatnonzero(needs.queued)
        tied = queued, needs.cause[queued]
        return self._waits(self._needs, self._again, tied, self._from_graph)

    @cached_property
    def free(self) -> Waits:
        """As it could be: a run that waited for a thread needs what it needed, and its graph."""
        needs = self._t.depends
        alone = needs.queued & (np.diff(needs.first) == 0) & (self.owner >= 0)
        rows = np.flatnonzero(alone)
        return self._waits(
            self._needs, self._again, (rows, self.n + self.owner[rows]), self._from_graph
        )

    @property
    def _needs(self) -> tuple[Ints, Ints]:
        needs = self._t.depends
        row = needs.user
        on = needs.on
        # A stolen run was not needed: what it needed was, and that is in `_again`.
        kept = ~self._gone[on]
        return row[kept], on[kept]

    @property
    def _from_graph(self) -> tuple[Ints, Ints]:
        rows = np.flatnonzero(self._root >= 0)
        return rows, self.n + self._root[rows]

    @property
    def _again(self) -> tuple[Ints, Ints]:
        """A run after one that failed, was lost or stolen, as a pair of the two.

        The failed one must have happened first; the stolen one took no time.
        """
        cause, status = self._t.depends.cause, self._t.runs["status"]
        rows = np.flatnonzero(cause >= 0)
        rows = rows[np.isin(status[cause[rows]], _FAILED) | self._gone[cause[rows]]]
        keys = self._t.runs["key"]
        mine = self._t.store.keys(keys[rows])
        theirs = self._t.store.keys(keys[cause[rows]])
        same = np.array([a == b for a, b in zip(mine, theirs, strict=True)], np.bool_)
        lost = status[cause[rows]] == _FAILED[1]
        rows = rows[same | lost]
        return rows, cause[rows]

    def _waits(self, *pairs: tuple[Ints, Ints]) -> Waits:
        row = np.concatenate([p[0] for p in pairs]).astype(np.int64)
        on = np.concatenate([p[1] for p in pairs]).astype(np.int64)
        code = np.unique(row * (self.n + len(self.graphs) + 1) + on)
        row, on = np.divmod(code, self.n + len(self.graphs) + 1)
        return Waits(*by_row(row, on, self.n))

    # -- how long -----------------------------------------------------------------------------

    @cached_property
    def known(self) -> Ints:
        """When the scheduler knew of each node in the recording: a run's end, a graph."""
        return np.concatenate([self.finished, self.taken])

    def before(self, lags: Ints) -> Ints:
        """For each run that waited for a thread the value of the run that made it free; else 0."""
        needs = self._t.depends
        return np.where(needs.queued, lags[needs.cause], 0) if self.n else lags

    @cached_property
    def lag_free(self) -> Ints:
        """The lag of each run where a stolen one was never given to the wrong worker."""
        return np.where(self._gone, 0, self.parts.lag)

    def outset(self, waits: Waits) -> Ints:
        """When the last thing that each run waits for had happened; -1 where it waits for none."""
        found = np.full(self.n, -1, np.int64)
        some = np.flatnonzero(np.diff(waits.first) > 0)
        if len(some):
            found[some] = np.maximum.reduceat(self.known[waits.on], waits.first[some])
        return found

    @cached_property
    def parts(self) -> Parts:
        """The parts of all runs."""
        base = self.outset(self.fixed)
        lead = np.where(base >= 0, np.maximum(self.received - base, 0), 0)
        fetch = self.ready - self.received
        free = self.threads.free
        pre = np.maximum(self.start - np.maximum(self.ready, free), 0)
        there = self.outset(self.free) + lead + fetch
        waited = (free >= 0) & (free >= there) & self._t.depends.queued
        turn = np.where(waited, self.start - free, pre)
        return Parts(lead, fetch, pre, self.stop - self.start, self.finished - self.stop, turn)
