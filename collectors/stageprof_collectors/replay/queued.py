"""Graphs that queue for their scheduler: the way of each begins where the one before was taken in.

A program hands graphs over faster than a scheduler takes them, so that the last of many waits for
all others. Did the way of each hold what the scheduler did meanwhile, all ways together would hold
as many steps as the square of the number of graphs. Nor would it be right: a scheduler that needs
half as long for each graph has been through the queue in half the time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stageprof_collectors.account.course import Course
from stageprof_collectors.account.path import Step, Walk
from stageprof_collectors.account.program import Kind, Op, Program

if TYPE_CHECKING:
    from stageprof_collectors.account.graph import Graph
    from stageprof_collectors.replay.model import Model


@dataclass
class Queued(Op):
    """The hand-over of a graph that is taken in after another; `after` is its own way only."""

    #: the other one (index of `Model.graphs`)
    behind: int = -1


class QueuedCourse(Course):
    """A course in which graphs queue."""

    def programs(self, model: Model) -> list[Program]:
        """See `Course.programs`."""
        behind = _behind(model)
        since = {graph: int(model.taken[other]) for graph, other in behind.items()}
        names = {(g.place, g.number): since[i] for i, g in enumerate(model.graphs) if i in since}
        self._walk = _OwnWays(self._walk, names)
        return [
            Program(p.run, [_placed(op, behind, since) for op in p.ops])
            for p in super().programs(model)
        ]


class _OwnWays(Walk):
    """A walk in which graphs are on their way only since an instant of each."""

    def __init__(self, walk: Walk, since: Mapping[tuple[int, int], int]) -> None:
        vars(self).update(vars(walk))  # what it has read of the recording serves both
        self._since = since

    def way(self, graph: Graph, ready: int) -> list[Step]:
        """See `Walk.way`."""
        since = self._since.get((graph.place, graph.number), 0)
        submit = graph.submit and graph.submit._replace(t=max(since, graph.submit.t))
        late = graph._replace(arrived=max(since, graph.arrived), submit=submit)
        return super().way(late, ready)


def _placed(op: Op, behind: Mapping[int, int], since: Mapping[int, int]) -> Op:
    if op.kind != Kind.GRAPH or op.on[0] not in behind:
        return op
    graph = op.on[0]
    own = [step for step in op.after if step.start >= since[graph]]
    return Queued(op.kind, op.at, op.on, op.before, own, behind[graph])


def _behind(model: Model) -> dict[int, int]:
    """Of each graph that waited for an earlier one of its sender: for which, as the last."""
    found = {}
    for graphs in _senders(model):
        taken: list[tuple[int, int]] = []
        for number in sorted(graphs, key=lambda i: _handed(model.graphs[i])):
            mine = int(model.taken[number]), number
            place = bisect_right(taken, mine)
            if place and taken[place - 1][0] > _handed(model.graphs[number]):
                found[number] = taken[place - 1][1]
            taken.insert(place, mine)
    return found


def _senders(model: Model) -> Iterator[list[int]]:
    """The graphs of each thread that handed some to a scheduler; those of tasks are left out."""
    found: defaultdict[tuple[int, int, int], list[int]] = defaultdict(list)
    for number, graph in enumerate(model.graphs):
        sent = (graph.submit.place, graph.submit.thread) if graph.submit else (-1, -1)
        if graph.parent < 0 and model.at_scheduler(graph):
            found[(graph.place, *sent)].append(number)
    yield from found.values()


def _handed(graph: Graph) -> int:
    return graph.submitted or graph.arrived
