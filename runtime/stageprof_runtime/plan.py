"""What of a plan's input is read and not used, told from the optimized plan.

An optimizer moves the choice of columns into the reader where the reader can do it. Where it
cannot, the plan still says so: right above what reads stands a projection, or a filter. Of arrays
it is a slice right above the layer that loads. Nothing is computed: what the plan has not worked
out itself is not asked for.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from dask.utils import key_split

from stageprof_runtime.chains import Link, links
from stageprof_runtime.loaded import Unused, of_layers

#: Expressions looked at in one plan: some 2 us each.
MOST: Final = 3_000
#: Characters of the names of the columns that are used, as JSON; of more, none is told.
LONGEST: Final = 10_000
#: What a value of a column takes that is not of a fixed size: texts of a few words.
_TEXT_BYTES: Final = 40
#: Expressions that read by a function of the user's or a library's.
_READERS: Final = frozenset({"FromMap", "FromMapProjectable", "FromDelayed"})


class Plan(NamedTuple):
    """An optimized plan, by the ids of its expressions."""

    nodes: dict[int, Any]
    #: what those that were fused are a part of
    groups: dict[int, Any]
    #: the expressions that each is made of
    parts: dict[int, list[Any]]


def plan_of(expr: Any) -> Plan:
    """The expressions of an optimized one, by id; of very many the first."""
    nodes: dict[int, Any] = {}
    groups: dict[int, Any] = {}
    parts: dict[int, list[Any]] = {}
    stack = [(expr, None)]
    while stack and len(nodes) < MOST:
        node, group = stack.pop()
        if group is not None:
            groups.setdefault(id(node), group)
        if id(node) not in nodes:
            nodes[id(node)] = node
            parts[id(node)] = found = _parts_of(node.operands)
            if type(node).__name__ == "Fused":
                # First comes what was fused, then what that needs.
                stack.extend((part, node) for part in _parts_of(node.operands[:1]))
                found = _parts_of(node.operands[1:])
            for part in found:
                stack.append((part, None))  # noqa: PERF401 (each is a call less)
    return Plan(nodes, {number: _outermost(groups, number) for number in groups}, parts)


def _outermost(groups: dict[int, Any], number: int) -> Any:
    """What one runs as a part of: what was fused may have been fused again."""
    seen = set[int]()  # one of the user's may hold itself
    while number in groups and number not in seen:
        seen.add(number)
        group = groups[number]
        number = id(group)
    return group


def _parts_of(operands: list[Any]) -> list[Any]:
    """The expressions among what one is made of, those in lists too."""
    found = []
    stack, lists = list(operands), set[int]()  # a list of the user's may hold itself
    while stack:
        part = stack.pop()
        if hasattr(type(part), "_parameters"):
            found.append(part)
        elif type(part) in (list, tuple) and part and id(part) not in lists and _may_hold(part[0]):
            lists.add(id(part))
            stack.extend(part)
    return found


def _may_hold(first: object) -> bool:
    """Whether a list that begins so may be of expressions: there are lists of a million inputs."""
    return hasattr(type(first), "_parameters") or type(first) in (list, tuple)


def unused(plan: Plan) -> Iterator[Unused]:
    """What a plan reads and does not use."""
    nodes, groups, _ = plan
    users, filtered = _users(nodes), _filtered(nodes)
    whole = len(nodes) < MOST  # else what was not looked at may use other columns
    for number, node in nodes.items():
        if type(node).__name__ in _READERS:
            group = groups.get(number, node)
            if whole:
                yield from _of_reader(node, users[number], group)
            if number in filtered:
                yield Unused(group._name, "filter", "", _function(node), 0, 0)
        elif type(node).__name__ == "HLGExpr":
            yield from of_layers(node.operand("dsk"))


def chained(plan: Plan) -> Iterator[Link]:
    """The chains of layers that a plan's graphs have, and that Dask may fuse; of many the first."""
    for node in plan.nodes.values():
        if type(node).__name__ == "HLGExpr":
            # Many sources may go on in the same layers, each of which is then told of many times.
            yield from islice(links(node.operand("dsk")), MOST)


def _users(nodes: dict[int, Any]) -> dict[int, dict[int, Any]]:
    """Those of which each is an operand, both by id; there may be a thousand that read."""
    found: defaultdict[int, dict[int, Any]] = defaultdict(dict)
    for number, node in nodes.items():
        if type(node).__name__ != "Fused":
            for part in node.operands:
                if id(part) in nodes:
                    found[id(part)][number] = node
    return found


def _filtered(nodes: dict[int, Any]) -> set[int]:
    """The ids of what filters stand right above of, or above a projection of it."""
    filters = [n for n in nodes.values() if type(n).__name__ == "Filter" and n.operands]
    below = [node.operands[0] for node in filters]
    return {id(b.operands[0] if type(b).__name__ == "Projection" else b) for b in below}


def _of_reader(reader: Any, used_by: dict[int, Any], group: Any) -> Iterator[Unused]:
    users, function = used_by.values(), _function(reader)
    columns = _columns(reader)
    if users and columns and all(type(user).__name__ == "Projection" for user in users):
        used = {name for user in users for name in _chosen(user)}
        total, count = sum(columns.values()), sum(columns.get(name, 0) for name in used)
        if used and count < total:
            names = json.dumps([name for name in columns if name in used])
            label = names if len(names) <= LONGEST else ""  # a part of them would mislead
            yield Unused(group._name, "columns", label, function, count, total)


def _function(reader: Any) -> str:
    function = reader.operands[0] if reader.operands else None
    if type(reader).__name__ == "FromDelayed":
        return _called(function)
    name = getattr(function, "__name__", "") if callable(function) else ""
    return name if type(name) is str else ""


def _called(container: Any) -> str:
    """What was called for the first of the pieces of `from_delayed`, as its key says."""
    pieces = getattr(container, "operands", ())
    key = getattr(pieces[0], "key", "") if pieces else ""
    return str(key_split(key)) if type(key) is str else ""


def _columns(reader: Any) -> dict[str, int]:
    """Bytes of one row in each column, if the plan has worked its columns out already."""
    meta = vars(reader).get("_meta")
    if type(meta).__name__ != "DataFrame":
        return {}
    pairs = zip(list(meta.columns), list(meta.dtypes.array), strict=True)
    widths = {name: _width(dtype) for name, dtype in pairs if type(name) is str}
    asked = reader.operand("columns") if "columns" in type(reader)._parameters else None
    if type(asked) is not list:
        return widths
    return {name: widths[name] for name in asked if type(name) is str and name in widths}


def _width(dtype: Any) -> int:
    fixed = getattr(dtype, "kind", "O") != "O"
    return int(getattr(dtype, "itemsize", 0)) if fixed else _TEXT_BYTES


def _chosen(projection: Any) -> list[str]:
    chosen = projection.operand("columns")
    names = chosen if type(chosen) is list else [chosen]
    return [name for name in names if type(name) is str]
