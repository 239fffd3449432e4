"""Operations on a data frame that Dask left as tasks of their own, though its optimizer fuses them.

What `compute` is given it wraps in an expression that hands nothing on to be fused (dask 2025.4 to
2026.8); `optimize()` of the collection itself does fuse. The groups are those that it would make
(`optimize_blockwise_fusion` of dask.dataframe), but that nobody is asked for partitions here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from stageprof_runtime.plan import MOST, Plan

#: What only holds what is computed together.
_SEQUENCE: Final = "_ExprSequence"
#: Dask leaves these alone, so that their data are not copied into each task.
_ALONE: Final = frozenset({"FromPandas", "FromArray", "FromDelayed"})


class Unfused(NamedTuple):
    """A row of UNFUSED without its time."""

    name: str
    by_name: str


class _Operations(NamedTuple):
    """The operations of one collection that may be fused, and who needs whom, by their ids."""

    nodes: dict[int, Any]
    parts: dict[int, list[int]]
    users: dict[int, set[int]]


def unfused(plan: Plan) -> Iterator[Unfused]:
    """Each operation that would be fused with others, and the last of these.

    Where several collections are computed together, `optimize()` of each fuses it by itself.
    Nothing is told if what they share were then done by each of them.
    """
    if len(plan.nodes) >= MOST:
        return
    found: dict[int, list[int]] = {}
    for known in _collections(plan):
        for group in _groups(known):
            if any(found.setdefault(number, group) != group for number in group):
                return
    for number, group in found.items():
        if len(group) > 1:
            yield Unfused(plan.nodes[number]._name, plan.nodes[group[0]]._name)


def _collections(plan: Plan) -> Iterator[_Operations]:
    """The operations of each collection that is computed; what was fused already is one."""
    outer = dict.fromkeys(number for number in plan.nodes if number not in plan.groups)
    needs = {number: [id(p) for p in plan.parts[number] if id(p) in outer] for number in outer}
    together = [number for number in outer if type(plan.nodes[number]).__name__ == _SEQUENCE]
    last = dict.fromkeys(part for number in together for part in needs[number])
    for number in last or [next(iter(plan.nodes))]:
        mine, stack = {number}, [number]
        while stack:
            new = set(needs[stack.pop()]) - mine
            mine |= new
            stack += new
        yield _operations(plan, {one: needs[one] for one in mine})


def _operations(plan: Plan, needs: dict[int, list[int]]) -> _Operations:
    nodes = {one: plan.nodes[one] for one in needs if _may_be_fused(type(plan.nodes[one]))}
    parts = {one: [part for part in needs[one] if part in nodes] for one in nodes}
    users: defaultdict[int, set[int]] = defaultdict(set)
    for one, used in needs.items():
        for part in used:
            users[part].add(one)
    return _Operations(nodes, parts, users)


def _may_be_fused(kind: type) -> bool:
    """Whether it makes each partition of one partition of each thing that it needs."""
    bases = {base.__name__ for base in kind.__mro__ if base.__module__.startswith("dask.dataframe")}
    return "Blockwise" in bases and not bases & _ALONE


def _groups(known: _Operations) -> Iterator[list[int]]:
    """Groups of operations, each beginning with its last one."""
    roots = [number for number in known.nodes if not known.users[number] & known.nodes.keys()]
    seen = set(roots)
    while roots:
        group = _group(known, roots.pop())
        seen.update(group)
        yield group
        for number in {part for member in group for part in known.parts[member]} - seen:
            seen.add(number)
            roots.append(number)


def _group(known: _Operations, root: int) -> list[int]:
    """An operation and those before it that only the group needs."""
    group, stack = {root: None}, [root]
    while stack:
        for part in known.parts[stack.pop()]:
            # One whose users come later is met again with each of them.
            if part not in group and known.users[part] <= group.keys():
                group[part] = None
                stack.append(part)
    return list(group)
