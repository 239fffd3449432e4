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
    """The operations of a plan that may be fused, and who needs whom, by their ids."""

    nodes: dict[int, Any]
    parts: dict[int, list[int]]
    users: dict[int, set[int]]


def unfused(plan: Plan) -> Iterator[Unfused]:
    """Each operation that would be fused with others, and the last of these.

    Of what is computed together none: fused one by one they would no longer share what they share.
    """
    kinds = [type(node).__name__ for node in plan.nodes.values()]
    together = (n for n in plan.nodes.values() if type(n).__name__ == _SEQUENCE)
    if len(kinds) >= MOST or "Fused" in kinds or any(len(n.operands) > 1 for n in together):
        return
    known = _operations(plan)
    for group in _groups(known):
        if len(group) > 1:
            for number in group:
                yield Unfused(known.nodes[number]._name, known.nodes[group[0]]._name)


def _operations(plan: Plan) -> _Operations:
    nodes = {number: node for number, node in plan.nodes.items() if _may_be_fused(type(node))}
    parts = {number: [id(p) for p in plan.parts[number] if id(p) in nodes] for number in nodes}
    users: defaultdict[int, set[int]] = defaultdict(set)
    for number, used in plan.parts.items():
        for part in used:
            users[id(part)].add(number)
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
