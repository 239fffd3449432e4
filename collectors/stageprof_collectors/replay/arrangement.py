"""Programs in another order: graphs that were handed over one by one, handed over together.

What a thread does between one call and the next (it makes a graph, it looks at a result) it still
does; but all graphs are made first, go in one message, and are waited for once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from stageprof_collectors.account.path import Step
from stageprof_collectors.account.program import Kind, Op, Program
from stageprof_runtime.stage import STEP

#: What a scheduler does for all tasks of a graph, whatever they carry.
_FOR_TASKS: Final = frozenset(
    STEP[step] for step in ("materialize", "lowlevel", "order", "state", "place")
)
#: What a message to the scheduler or the fetching of a result takes however little is in it, at
#: most, ns: several hops between event loops. What is longer is so for what it carries.
ONCE: Final = 20_000_000


def together(
    programs: Iterable[Program], groups: Iterable[Iterable[int]], own: Mapping[int, float]
) -> list[Program]:
    """The programs with the graphs of each group handed over as one.

    Args:
        programs: of the region and of tasks.
        groups: indices of graphs that one thread handed over one after another; graphs of that
            thread between them go along.
        own: of those that have tasks in common with others, what part is their own.
    """
    wanted = [frozenset(group) for group in groups]
    return [_arranged(program, wanted, own) for program in programs]


def _arranged(program: Program, groups: list[frozenset[int]], own: Mapping[int, float]) -> Program:
    ops = program.ops
    for group in groups:
        ops = _joined(ops, group, own)
    return Program(program.run, ops)


def _joined(ops: list[Op], group: frozenset[int], own: Mapping[int, float]) -> list[Op]:
    mine = [i for i, op in enumerate(ops) if op.kind == Kind.GRAPH and op.on[0] in group]
    if len(mine) < 2:
        return ops
    first, end = mine[0], mine[-1] + 1
    while end < len(ops) and ops[end].kind == Kind.WAIT:
        end += 1
    stretch = ops[first:end]
    if any(op.kind not in (Kind.GRAPH, Kind.WAIT) for op in stretch):
        return ops
    together, others = _parted(stretch, group)
    return [*ops[:first], *_one(together, own), *others, *ops[end:]]


def _parted(stretch: list[Op], group: frozenset[int]) -> tuple[list[Op], list[Op]]:
    """The graphs of a group with the waits for them, and those of others between them."""
    mine, others = list[Op](), list[Op]()
    into = mine
    for op in stretch:
        if op.kind == Kind.GRAPH:
            into = mine if op.on[0] in group else others
        into.append(op)
    return mine, others


def _one(stretch: list[Op], own: Mapping[int, float]) -> list[Op]:
    """All graphs of a stretch at the instant of its first, and one wait at that of its last."""
    graphs = [op for op in stretch if op.kind == Kind.GRAPH]
    waits = [op for op in stretch if op.kind == Kind.WAIT]
    way = _shared([_part(op.after, own.get(op.on[0], 1.0)) for op in graphs])
    made = [step for op in graphs for step in op.before]
    # None of them queues behind another any more, but all behind what the first did.
    found = [replace(graphs[0], before=made, after=way)]
    found += [replace(graphs[0], on=op.on, before=[], after=way) for op in graphs[1:]]
    if waits:
        on = sorted({run for op in waits for run in op.on})
        before = [step for op in waits for step in op.before]
        found.append(Op(Kind.WAIT, waits[-1].at, on, before, _shared([op.after for op in waits])))
    return found


def _part(way: list[Step], own: float) -> list[Step]:
    """A graph's way with what the scheduler does for this part of its tasks."""
    if own >= 1:
        return way
    return [
        step._replace(stop=step.start + round((step.stop - step.start) * own))
        if step.what.step in _FOR_TASKS
        else step
        for step in way
    ]


def _shared(ways: list[list[Step]]) -> list[Step]:
    """Ways as one: what each takes at least is there once."""
    once = min([ONCE, *(_length(way) for way in ways)])
    return [*ways[0], *(step for way in ways[1:] for step in _without(way, once))]


def _length(way: list[Step]) -> int:
    return sum(step.stop - step.start for step in way)


def _without(way: list[Step], ns: int) -> list[Step]:
    """What is left of a way without its first so many ns."""
    left = []
    for step in way:
        gone = min(ns, step.stop - step.start)
        ns -= gone
        if step.start + gone < step.stop:
            left.append(step._replace(start=step.start + gone))
    return left
