"""What a thread does one after another: its own time, graphs it hands over, runs it waits for.

The region's thread is one such program; a task that launches tasks is another. A replay goes
through them as it goes through runs: own time takes as long as it took, waiting results.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from stageprof_collectors.account.graph import Graph
from stageprof_collectors.account.lane import What
from stageprof_collectors.account.path import Step
from stageprof_runtime.stage import UNEXPLAINED

#: `Step.run` of time that no change touches.
CONSTANT = -2


class Kind(IntEnum):
    """What an operation of a program is."""

    #: hand over a graph; `after` is its way until the scheduler begins to place its tasks
    GRAPH = 0
    #: wait for runs; `after` is from the end of the last of them to the caller's going on
    WAIT = 1
    #: a task on this very thread
    INLINE = 2
    END = 3


@dataclass
class Op:
    """One operation; `at` is when it was over in the recording, ns, `on` its graph or runs."""

    kind: Kind
    at: int
    on: list[int] = field(default_factory=list)
    before: list[Step] = field(default_factory=list)
    after: list[Step] = field(default_factory=list)


@dataclass
class Program:
    """The operations of one thread in order; `run` is the task that it is, -1 for the region."""

    run: int
    ops: list[Op] = field(default_factory=list)


class Event(NamedTuple):
    """What a program is made from: an operation from `start` to `stop`."""

    start: int
    stop: int
    kind: Kind
    on: list[int]
    #: where `before` ends and `after` begins, and the steps of `after`; None: those of the thread
    split: int
    steps: list[Step] | None = None


class Track:
    """A thread's time as steps in order, to be cut into pieces."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps
        self._starts = [step.start for step in steps]

    def cut(self, start: int, stop: int) -> list[Step]:
        """The pieces of [start, stop); what no step covers is constant."""
        first = max(0, bisect_right(self._starts, start) - 1)
        found, now = [], start
        for at in range(first, len(self._steps)):  # a slice would copy the rest for each piece
            step = self._steps[at]
            a, b = max(now, step.start), min(stop, step.stop)
            if step.start >= stop:
                break
            if b > a:
                found += _constant(now, a)
                found.append(step._replace(start=a, stop=b))
                now = b
        return found + _constant(now, stop)


def _constant(start: int, stop: int) -> list[Step]:
    return [Step(start, stop, What(UNEXPLAINED, -1), CONSTANT)] if stop > start else []


def program(run: int, start: int, stop: int, events: Iterable[Event], track: Track) -> Program:
    """The program of a thread from its events; what is between them is its own time."""
    made, now = Program(run), start
    for event in sorted(events, key=lambda e: (e.start, e.stop)):
        if event.stop < now or event.start > stop:
            continue
        begin = min(max(event.start, now), stop)
        end = min(max(event.stop, begin), stop)
        split = min(max(event.split, begin), end)
        after = track.cut(split, end) if event.steps is None else event.steps
        made.ops.append(Op(event.kind, end, event.on, track.cut(now, begin), after))
        now = end
    made.ops.append(Op(Kind.END, stop, [], track.cut(now, stop)))
    return made


def handed(graph: Graph, number: int, ready: int, steps: list[Step]) -> Event:
    """The event of handing a graph over, whose way (`steps`) ends at `ready`."""
    t = graph.submitted or graph.arrived
    way = Track(steps).cut(t, max(t, ready))
    return Event(t, t, Kind.GRAPH, [number], t, way)


def length(pieces: list[Step], serial: Callable[[Step], float] | None) -> int:
    """How long pieces take when a change leaves of each the fraction that `serial` says, ns."""
    if serial is None:
        return sum(p.stop - p.start for p in pieces)
    return sum(round((p.stop - p.start) * (serial(p) if p.run == -1 else 1.0)) for p in pieces)
