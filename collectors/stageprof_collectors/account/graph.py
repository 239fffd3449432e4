"""Graphs on their way: when each was begun, handed over and taken in, and by whom.

A graph that arrives at a scheduler and the hand-over that the client noted are two rows of two
processes. They are matched once, here, for all who ask.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stageprof_collectors.account.attempts import LOCAL, lookup
from stageprof_runtime.event import NO_CAUSE, SAMPLED
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.account.attempts import Columns, Ints
    from stageprof_collectors.account.timeline import Timeline

#: Stamps of two clocks may disagree by this much, ns.
SLACK = 2_000_000

#: What a call does on its thread before it hands a graph over.
_BEFORE = (STEP["expr"], STEP["graph.dump"], STEP["materialize"])
#: How the ids of clients begin that Dask gives to tasks.
_IN_TASK = "Client-worker-"


class Submit(NamedTuple):
    """A hand-over: when (aligned ns), by which place and lane, at which line, how much."""

    t: int
    place: int
    graph: int
    wanted: int
    nbytes: int
    thread: int
    file: int
    line: int


class Graph(NamedTuple):
    """A graph at a scheduler (`place`), under the number that it has there.

    `arrived` and `taken`: when it came, and when the state of its tasks was made; `submit` is
    its hand-over (None: not recorded), `begun` when the call that handed it over began. Times
    are aligned ns; `client` indexes texts; `parent` is the run whose task sent it, or -1.
    """

    place: int
    number: int
    arrived: int
    taken: int
    tasks: int
    wanted: int
    client: int
    parent: int
    submit: Submit | None
    begun: int

    @property
    def submitted(self) -> int:
        """When it was handed over, ns; 0 if that is not known."""
        return self.submit.t if self.submit else 0


def graphs(timeline: Timeline) -> list[Graph]:
    """All graphs in the order of their arrival, each with its hand-over."""
    table = timeline.read("graph", "start", "stop")
    sent = _Sent(_submits(timeline), _joined(timeline))
    calls = _Calls(timeline)
    names = ("place", "graph", "start", "stop", "tasks", "wanted", "client", "parent")
    order = np.argsort(table["start"], kind="stable")
    found = []
    for row in zip(*(table[n][order].tolist() for n in names), strict=True):
        in_task = row[7] >= 0
        client = timeline.store.strings[row[6]]
        submit = sent.take(row[0], row[1], row[2], row[5], client, in_task=in_task)
        begun = calls.begun(submit, row[3]) if submit else row[2]
        found.append(Graph._make((*row, submit, begun)))
    return found


def untaken(timeline: Timeline) -> Submit | None:
    """The last hand-over, if the graph is at no scheduler yet: it is telling of none."""
    submits = _submits(timeline)
    known = {(graph.submit.place, graph.submit.graph) for graph in timeline.graphs if graph.submit}
    if not submits or (submits[-1].place, submits[-1].graph) in known:
        return None
    return submits[-1]


def _submits(timeline: Timeline) -> list[Submit]:
    table = timeline.read("submit", "t")
    columns = (table[name].tolist() for name in Submit._fields)
    return sorted(Submit(*row) for row in zip(*columns, strict=True))


def _joined(timeline: Timeline) -> dict[str, int]:
    """The place of each client that was recorded, by its id."""
    return {client: place for _, place, client in timeline.marks("cluster joined")}


class _Sent:
    """Hand-overs that have not been matched yet.

    A scheduler takes graphs of others' clients too, which were not recorded. Those of clients in
    tasks were, by the workers; or by the client's process, if the workers are threads of it.
    """

    def __init__(self, submits: list[Submit], joined: dict[str, int]) -> None:
        self._joined = joined
        self._local = {(s.place, s.graph): s for s in submits}
        #: whether a client handed it over that was joined, and keys wanted -> hand-overs
        self._queues: defaultdict[tuple[bool, int], deque[Submit]] = defaultdict(deque)
        places = set(joined.values())
        for submit in submits:
            if submit.graph < LOCAL:
                self._queues[submit.place in places, submit.wanted].append(submit)

    def take(
        self, place: int, number: int, arrived: int, wanted: int, client: str, *, in_task: bool
    ) -> Submit | None:
        """The hand-over of a graph: the first that came before it and wants as many keys.

        A local scheduler has its graph from its own process, under the same number.
        """
        if (place, number) in self._local:
            return self._local[place, number]
        sides = self._sides(client, in_task=in_task)
        wanting = [(side, wanted) for side in sides] if wanted else list(self._queues)
        queues = [self._queues[which] for which in wanting if which[0] in sides]
        fit = [queue for queue in queues if queue and queue[0].t <= arrived + SLACK]
        return min(fit, key=lambda queue: queue[0].t).popleft() if fit else None

    def _sides(self, client: str, *, in_task: bool) -> tuple[bool, ...]:
        """Whose hand-overs a client's graph may be: of those that were joined, of others."""
        if not self._joined or in_task or client.startswith(_IN_TASK):
            return True, False
        return (True,) if client in self._joined else ()  # a stranger's was not seen


class _Calls:
    """Finds when a call began: with the first of its optimizations or dumps.

    A local scheduler is given its graph first, and then materializes and runs it on the same
    thread: what was done there until it returned is no part of the next call.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._last: dict[tuple[int, int], int] = {}
        self._region = timeline.region
        self._lanes = _by_lane(timeline.spans, _BEFORE)
        self._returned = _returns(timeline.spans)

    def begun(self, submit: Submit, taken: int) -> int:
        """When the call began that made a hand-over, ns; to be asked in order of time.

        `taken`: when its graph was taken in, by a scheduler on the same thread or by another.
        """
        lane = self._on(submit)
        since = max(self._last.get(lane, self._region.start), self._return(lane, submit.t))
        self._last[lane] = taken if submit.graph >= LOCAL else submit.t
        spans = self._lanes.get(lane, [])
        for i in range(bisect_left(spans, (since, 0)), len(spans)):
            start, stop = spans[i]
            if start > submit.t:
                break
            if stop <= submit.t + SLACK:
                return start
        return submit.t

    def _on(self, submit: Submit) -> tuple[int, int]:
        """Place and thread of a hand-over: coroutines share one, and do this one after another."""
        region = self._region
        own = (submit.place, submit.thread) == (region.place, region.lane)
        return submit.place, region.thread if own else submit.thread

    def _return(self, lane: tuple[int, int], t: int) -> int:
        """When a local scheduler last returned to a thread before an instant; 0 if none did."""
        returned = self._returned.get(lane, [])
        i = bisect_right(returned, t)
        return returned[i - 1] if i else 0


def _returns(spans: Columns) -> dict[tuple[int, int], list[int]]:
    """When local schedulers returned to their callers, by (place, thread), in order.

    What they do before their loop begins, as the sampler saw it, is a part of the call.
    """
    exact = spans["nbytes"] != SAMPLED
    spans = {name: column[exact] for name, column in spans.items()}
    loops = _by_lane(spans, (STEP["local.loop"],))
    return {lane: sorted(stop for _, stop in pairs) for lane, pairs in loops.items()}


def _by_lane(
    spans: Columns, steps: tuple[int, ...]
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Start and stop of the spans of some steps by (place, thread), in order."""
    rows = np.flatnonzero(np.isin(spans["step"], steps))
    rows = rows[np.lexsort((spans["stop"][rows], spans["start"][rows]))]
    found: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    names = ("place", "thread", "start", "stop")
    for place, thread, start, stop in zip(*(spans[n][rows].tolist() for n in names), strict=True):
        found[place, thread].append((start, stop))
    return found


def graph_of_runs(timeline: Timeline) -> Ints:
    """Number of the graph of each run; -1 if unknown.

    It is what the scheduler said; else the one that led to the run, through runs that led to it.
    """
    cause, led = timeline.runs["cause"], timeline.depends.cause
    straight = np.where((cause < 0) & (cause != NO_CAUSE), -1 - cause, -1)
    top = np.where(led >= 0, led, np.arange(len(led)))
    table = timeline.store.table("owner")
    row = timeline.runs_of(table["run"], table["place"])
    told = row[row >= 0]
    straight[told], top[told] = table["graph"][row >= 0], told
    while not np.array_equal(higher := top[top], top):  # twice as far each time
        top = higher
    owner: Ints = straight[top]
    return owner


def row_of_graphs(timeline: Timeline, numbers: Ints) -> Ints:
    """Index in `Timeline.graphs` of a graph of each run's scheduler, by its number; -1: none."""
    found = np.full(len(numbers), -1, np.int64)
    known = timeline.graphs
    mine, theirs = (np.array([g[i] for g in known], np.int64) for i in (1, 0))
    if known and len(numbers):
        at, there = lookup(mine, theirs, numbers, timeline.runs["place"])
        found[there] = at[there]
    return found
