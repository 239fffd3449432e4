"""The parts of graphs: which graph a piece of time was for, and whose tasks are in it.

What is done to a graph as a whole belongs to the layers whose tasks ran for it: equally for each
task where a task costs as much as any other (ordering, state), and otherwise by what the tasks
and the objects in them were seen to cost or to weigh.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import Final

import numpy as np

from stageprof_collectors.account.carried import Carried
from stageprof_collectors.account.graph import SLACK, Graph
from stageprof_collectors.account.groups import Owners, Parts
from stageprof_collectors.account.timeline import LOCAL, Ints, Timeline
from stageprof_runtime.stage import STEP, Stage, stage_of

#: Steps of a graph that come after a local scheduler took it; a client's others come before.
_AFTER: Final = frozenset(
    STEP[s]
    for s in ("order", "state", "local.loop", "place", "transition", "connect", "result.gather")
)
#: Stages that lead to a hand-over.
_BEFORE: Final = frozenset({Stage.CONSTRUCTION, Stage.OPTIMIZATION})
#: How a step's seconds are shared over the tasks of a graph.
BY_DUMP, BY_LOAD, BY_BYTES, BY_TASKS = "dump", "load", "bytes", "tasks"
_KINDS: Final = {
    STEP["graph.dump"]: BY_DUMP,
    STEP["graph.load"]: BY_LOAD,
    STEP["graph.send"]: BY_BYTES,
}


def kind_of(step: int) -> str:
    """How a step's seconds are shared over the tasks of a graph."""
    return _KINDS.get(step, BY_TASKS)


class GraphParts:
    """The graphs of one timeline and the rows of the table of layers that are in each."""

    def __init__(self, timeline: Timeline, owners: Owners, carried: Carried) -> None:
        self._t = timeline
        self._owners = owners
        self._carried = carried
        #: in the order in which schedulers took them
        self._graphs = timeline.graphs
        #: scheduler's place -> arrivals in order, and which graphs
        self._arrivals = _by_place((g.place, g.arrived) for g in self._graphs)
        #: client's place -> hand-overs in order, and which graphs
        self._deadlines = _by_place(map(_handed_over, self._graphs))

    def at(self, place: int, step: int, t: int) -> int:
        """The graph that a place was working on, or towards, at an instant; -1 if none."""
        if place in self._deadlines and step not in _AFTER:
            deadlines, which = self._deadlines[place]
            i = int(np.searchsorted(deadlines, t, side="left"))
            if i < len(which):
                return int(which[i])
            if stage_of(step) in _BEFORE:
                return -1  # what was built last was handed over to nobody
        return self._latest(place, t)

    def _latest(self, place: int, t: int) -> int:
        """The last graph that had arrived at a scheduler, or, for other places, at any."""
        times, which = self._arrivals.get(place) or self._anywhere
        i = int(np.searchsorted(times, t + SLACK, side="right")) - 1
        return int(which[i]) if i >= 0 else -1

    @cached_property
    def _anywhere(self) -> tuple[Ints, Ints]:
        return _by_place((0, graph.arrived) for graph in self._graphs).get(0, (_NONE, _NONE))

    def taking(self, place: int, t: int) -> bool:
        """Whether a scheduler was taking in a graph at an instant."""
        graph = self._latest(place, t)
        return graph >= 0 and t < self._graphs[graph].taken

    def taken(self, graph: int) -> int:
        """When a scheduler took a graph; 0 if there is none."""
        return self._graphs[graph].arrived if graph >= 0 else 0

    # -- tasks --------------------------------------------------------------------------------

    @property
    def of_run(self) -> Ints:
        """Index of the graph of each run; -1: unknown."""
        return self._t.graph_rows

    @cached_property
    def first(self) -> Ints:
        """When the first task of each graph started; the end of time if none did."""
        first = np.full(len(self._graphs), np.iinfo(np.int64).max, np.int64)
        mine = self.of_run >= 0
        np.minimum.at(first, self.of_run[mine], self._t.runs["start"][mine])
        return first

    @cached_property
    def start_of_run(self) -> Ints:
        """When the graph of each run was taken in; when the run was assigned if that is unknown."""
        known = self.of_run >= 0
        start = self._t.runs["assigned"].copy()
        arrived = np.array([graph.arrived for graph in self._graphs], np.int64)
        start[known] = arrived[self.of_run[known]]
        return start

    @cached_property
    def _tasks(self) -> dict[int, dict[int, float]]:
        """Runs of each graph by row."""
        known = self.of_run >= 0
        most = int(self._owners.of_run.max(initial=0)) + 1
        pairs = self.of_run[known] * most + self._owners.of_run[known]
        different, counts = np.unique(pairs, return_counts=True)
        found: defaultdict[int, dict[int, float]] = defaultdict(dict)
        columns = (c.tolist() for c in (*np.divmod(different, most), counts))
        for graph, row, count in zip(*columns, strict=True):
            found[graph][row] = count
        return found

    # -- shares -------------------------------------------------------------------------------

    def parts(self, kind: str, graph: int, total: float) -> Parts:
        """How `total` ns (or bytes) of a graph are shared over rows.

        What is known of its heavy layers first, the rest by tasks.
        """
        tasks = self._tasks.get(graph, {})
        if not tasks:
            return self._owners.without_tasks(graph)
        if kind == BY_TASKS:
            return tasks
        known = self._known(kind, graph, tasks)
        rest = total - sum(known.values())
        if rest <= 0:
            return known
        each = rest / sum(tasks.values())
        rows = {*known, *tasks}
        return {row: known.get(row, 0.0) + each * tasks.get(row, 0.0) for row in rows}

    def _known(self, kind: str, graph: int, tasks: Parts) -> Parts:
        """What of a graph's dump (ns), load (ns) or bytes is known to be for some rows.

        Objects were timed and weighed when the graph was dumped. Of what the graph's load took
        nothing is known by itself, and of its dump only where objects were looked for; but every
        task is dumped and loaded again on its way to a worker. What a task of a row took there
        beyond a simple task stands for the graph's hop; an object that the graph holds in fewer
        copies than there are tasks counts as often as it is in the graph.
        """
        objects = self._objects.get(graph, {})
        if objects and kind != BY_LOAD:
            return {row: entry[kind == BY_BYTES] for row, entry in objects.items()}
        step = STEP["task.load"] if kind == BY_LOAD else STEP["task.dump"]
        sums = self._carried.nbytes[step] if kind == BY_BYTES else self._carried.ns[step]
        each = {row: sums[row] / max(1, self._owners.tasks(row)) for row in tasks if row in sums}
        simple = min(each.values(), default=0.0)
        copies = {row: objects[row][2] if row in objects else tasks[row] for row in each}
        return {row: min(tasks[row], copies[row]) * (one - simple) for row, one in each.items()}

    @cached_property
    def _objects(self) -> dict[int, dict[int, list[float]]]:
        """Of the objects seen in each graph, by row: ns of their dump, bytes, copies."""
        table, strings = self._t.read("object", "t"), self._t.store.strings
        names = ("t", "place", "name", "dump", "nbytes", "copies")
        found: defaultdict[int, dict[int, list[float]]] = defaultdict(dict)
        for t, place, name, dump, nbytes, copies in zip(
            *(table[n].tolist() for n in names), strict=True
        ):
            graph = self.at(place, STEP["graph.dump"], t)
            rows = self._owners.named(strings[name])
            whole = sum(rows.values())
            for row, part in rows.items():
                entry = found[graph].setdefault(row, [0.0, 0.0, 0.0])
                for i, value in enumerate((dump, nbytes * copies, copies)):
                    entry[i] += value * part / whole
        return found


def _handed_over(graph: Graph) -> tuple[int, int]:
    """Where and when a graph left the client; a local scheduler's when it was taken in."""
    if graph.number >= LOCAL:
        return graph.place, graph.taken
    return (graph.submit.place, graph.submit.t) if graph.submit else (-1, graph.arrived)


_NONE: Final[Ints] = np.zeros(0, np.int64)


def _by_place(pairs: Iterable[tuple[int, int]]) -> dict[int, tuple[Ints, Ints]]:
    """(place, t) of each graph -> by place the times in order, and which graphs they are of."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, (place, t) in enumerate(pairs):
        found[place].append((t, i))
    columns = {place: np.array(sorted(rows), np.int64).T for place, rows in found.items()}
    return {place: (t, i) for place, (t, i) in columns.items()}
