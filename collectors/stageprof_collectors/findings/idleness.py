"""Threads without work while others had some, and why: no task was left, or it waited elsewhere.

At each instant: how many runs were on threads, how many could have been (what they needed was
there), and how many threads there were. A thread is idle *for want of tasks* if none could have
been on it; if one could, but stood in line for another worker's thread, it is idle because of
*where* tasks were put. Instants at which tasks are on their way are neither: that is overhead.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_collectors.tables.crew import Crew

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

#: Of the time: a thread that works less than it waits is idle.
HALF = 0.5


class Idleness:
    """The threads of a recording's workers over time."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._t = recording.timeline
        self.crew = Crew(recording)

    def __bool__(self) -> bool:
        return len(self.crew.rows) > 0 and self.crew.threads > 1

    @cached_property
    def _rows(self) -> Ints:
        """Rows of the runs that workers did, and that they were at when the recording ended."""
        found: Ints = np.union1d(self.crew.rows, self.crew.going_on)
        return found

    @cached_property
    def _stop(self) -> Ints:
        """When each run ended; one that went on when the recording ended worked until then."""
        found = self._t.runs["stop"].copy()
        found[self.crew.going_on] = self._t.region.stop
        return found

    # -- thread by thread ---------------------------------------------------------------------

    @cached_property
    def busy(self) -> Floats:
        """Seconds that the threads of each worker worked."""
        rows = self._rows
        took = (self._stop - self._t.runs["start"])[rows] / 1e9
        member = self.crew.member_of[rows]
        found = np.bincount(member, weights=took, minlength=len(self.crew.members))
        return found.astype(float)

    @cached_property
    def share(self) -> float:
        """Part of the threads' time, while any of them worked, in which they had nothing to do."""
        whole = float((self._length * self._threads)[self._running > 0].sum())
        return 1 - float((self._length * self._working).sum()) / whole if whole > 0 else 0.0

    @cached_property
    def idle(self) -> list[int]:
        """Members that had nothing to do for more than half of the time in which any worked."""
        return [i for i, part in enumerate(self._parts) if part > HALF]

    @cached_property
    def _parts(self) -> list[float]:
        """For each member the part of the time in which any thread worked that it was idle."""
        if not len(self._edges):
            return []
        worked = np.concatenate([[0.0], np.cumsum(self._length * (self._running > 0))])
        since, until, threads = self._stays
        a, b = (np.interp(t, self._edges.astype(float), worked) for t in (since, until))
        there = (b - a) / 1e9 * threads
        part = np.maximum(0.0, 1 - self.busy / np.where(there > 0, there, np.inf))
        found: list[float] = np.where(there > 0, part, 0.0).tolist()
        return found

    # -- instant by instant -------------------------------------------------------------------

    @cached_property
    def _edges(self) -> Ints:
        runs, rows = self._t.runs, self._rows
        times = [runs["start"][rows], self._stop[rows], self._able, self._queued_from]
        times += [np.array([t for m in self.crew.members for t in (m.since, m.until)], np.int64)]
        return np.unique(np.concatenate(times))

    @cached_property
    def _length(self) -> Floats:
        """Ns from each edge to the next."""
        found: Floats = np.diff(self._edges).astype(float)
        return found

    @cached_property
    def _running(self) -> Ints:
        rows = self._rows
        return self._count(self._t.runs["start"][rows], self._stop[rows])

    @property
    def _working(self) -> Ints:
        return np.minimum(self._running, self._threads)

    @cached_property
    def _threads(self) -> Ints:
        since, until, threads = self._stays
        return self._count(since, until, threads)

    @cached_property
    def _stays(self) -> Ints:
        """Of each member since when and until when it was there, and its threads: three rows."""
        stays = [(m.since, m.until, m.threads) for m in self.crew.members]
        return np.array(stays, np.int64).reshape(-1, 3).T

    @cached_property
    def _able(self) -> Ints:
        """When all that each run needed had happened, ns: its graph, and the ends of other runs."""
        runs, rows = self._t.runs, self._rows
        needs = self._t.depends
        ended = np.where(runs["finished"] > 0, runs["finished"], runs["stop"])
        when = np.where(runs["cause"] >= 0, 0, runs["assigned"])
        some = np.flatnonzero(np.diff(needs.first) > 0)
        if len(some):
            last = np.maximum.reduceat(ended[needs.on], needs.first[some])
            when[some] = np.where(when[some] > 0, when[some], last)
        # A run that stood in line for a thread could have begun when its graph was taken in.
        lined = needs.queued & (np.diff(needs.first) == 0)
        when = np.where(lined, self._graph_of_line(lined), when)
        when = np.where(when > 0, when, runs["assigned"])
        found: Ints = np.minimum(when, runs["start"])[rows]
        return found

    def _graph_of_line(self, lined: NDArray[np.bool_]) -> Ints:
        """For runs that stood in line: when the run that led to the line had been assigned."""
        runs, cause = self._t.runs, self._t.depends.cause
        first = np.where(lined, cause, np.arange(len(cause)))
        while not np.array_equal(earlier := first[first], first):
            first = earlier
        found: Ints = runs["assigned"][first]
        return found

    @cached_property
    def _queued_from(self) -> Ints:
        """When each run was at its worker with all its data, ns."""
        return self._t.runs["ready"][self._rows]

    @cached_property
    def _waiting(self) -> Ints:
        """Runs that could have been on a thread and were not."""
        return self._count(self._able, self._t.runs["start"][self._rows])

    @cached_property
    def _in_line(self) -> Ints:
        """Runs that waited at a worker for one of its threads."""
        return self._count(self._queued_from, self._t.runs["start"][self._rows])

    def _count(self, start: Ints, stop: Ints, each: Ints | int = 1) -> Ints:
        """How many of some intervals cover each stretch between two edges; each counts so much."""
        if not len(self._edges):
            return np.zeros(0, np.int64)
        change = np.zeros(len(self._edges), np.int64)
        np.add.at(change, np.searchsorted(self._edges, start), each)
        np.add.at(change, np.searchsorted(self._edges, stop), -each)
        return np.cumsum(change)[:-1]

    # -- why ----------------------------------------------------------------------------------

    @cached_property
    def _lacking(self) -> NDArray[np.bool_]:
        some = (self._running > 0) & (self._running < self._threads)
        found: NDArray[np.bool_] = some & (self._waiting == 0)
        return found

    @property
    def lacking(self) -> Ints:
        """From when to when (two rows) threads had nothing to do for want of tasks, ns."""
        edges = self._edges
        return np.stack([edges[:-1][self._lacking], edges[1:][self._lacking]])

    @cached_property
    def want_s(self) -> float:
        """Thread seconds idle while others worked, because no further task could begin."""
        spare = self._threads - self._running
        return float((self._length * spare * self._lacking).sum()) / 1e9

    @cached_property
    def misplaced_s(self) -> float:
        """Thread seconds idle while tasks stood in line for the threads of other workers."""
        spare = np.minimum(self._unwanted, self._in_line)
        some = (self._running > 0) & (spare > 0)
        return float((self._length * spare * some).sum()) / 1e9

    @cached_property
    def _unwanted(self) -> Ints:
        """Threads for which no task was at work or in line at their own worker."""
        if not len(self._edges):
            return np.zeros(0, np.int64)
        change = np.zeros(len(self._edges), np.int64)
        stop = self._stop[self._rows]
        member_of = self.crew.member_of[self._rows]
        order = np.argsort(member_of, kind="stable")
        cuts = np.searchsorted(member_of[order], np.arange(1, len(self.crew.members)))
        for member, mine in zip(self.crew.members, np.split(order, cuts), strict=True):
            times = np.concatenate(
                [[member.since, member.until], self._queued_from[mine], stop[mine]]
            )
            more = np.repeat([member.threads, -member.threads, -1, 1], [1, 1, len(mine), len(mine)])
            when = np.argsort(times, kind="stable")
            spare = np.maximum(np.cumsum(more[when]), 0)
            np.add.at(change, np.searchsorted(self._edges, times[when]), np.diff(spare, prepend=0))
        return np.cumsum(change)[:-1]

    def split(self, efficiency: float) -> Floats:
        """For each run what would be left of its time if idle threads had parts of the work.

        Args:
            efficiency: what a further thread does of one's work.
        """
        runs = self._t.runs
        most = max(1, self.crew.useful)
        used = np.minimum(self._running, most)
        more = np.minimum(self._threads, most) - used
        # Where a run outlasts what is known of its worker, or nothing runs, there may be no thread.
        all_ = np.maximum(used + efficiency * more, 1)
        left = np.where(self._lacking & (more > 0), used / all_, 1.0)
        left_ns = np.concatenate([[0.0], np.cumsum(left * self._length)])
        factor = np.ones(len(runs["run"]))
        rows = self._rows
        a, b = (np.searchsorted(self._edges, t[rows]) for t in (runs["start"], self._stop))
        took = np.maximum(self._stop[rows] - runs["start"][rows], 1)
        factor[rows] = np.clip((left_ns[b] - left_ns[a]) / took, 0.0, 1.0)
        factor[runs["run"] >= LOCAL] = 1.0
        return factor

    @cached_property
    def alone(self) -> Ints:
        """Rows of the runs that were at work while threads lacked tasks, longest so first."""
        runs, rows = self._t.runs, self._rows
        lack = np.concatenate([[0.0], np.cumsum(self._length * self._lacking)])
        a, b = (np.searchsorted(self._edges, t[rows]) for t in (runs["start"], self._stop))
        spent = lack[b] - lack[a]
        order = np.argsort(-spent, kind="stable")
        found: Ints = rows[order][spent[order] > 0]
        return found

    @cached_property
    def alone_ns(self) -> Floats:
        """How long each run was at work while threads lacked tasks, ns, by its row."""
        runs, rows = self._t.runs, self._rows
        lack = np.concatenate([[0.0], np.cumsum(self._length * self._lacking)])
        a, b = (np.searchsorted(self._edges, t[rows]) for t in (runs["start"], self._stop))
        found = np.zeros(len(runs["run"]))
        found[rows] = lack[b] - lack[a]
        return found
