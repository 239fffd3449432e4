"""Expressions of which Dask computes first where to divide them: a sort, an index, a size.

To ask one for its partitions, or to optimize what needs it, is to compute all that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

#: What divides by values, unless it is told where; and what divides by memory, if it is told to.
_SORTS: Final = "BaseSetIndexSortValues"
_DIVIDES: Final = "Repartition"


def divided_first(graph: Any, inside: Callable[[Any], Iterator[Any]], most: int) -> frozenset[int]:
    """The ids of such expressions, and of all that need them.

    Args:
        graph: an expression, or several.
        inside: the expressions that one is made of.
        most: so many are looked at.
    """
    nodes, made_of = dict[int, Any](), dict[int, list[int]]()
    stack = list(graph) if type(graph) is list else [graph]
    while stack and len(nodes) < most:
        node = stack.pop()
        if id(node) not in nodes and hasattr(type(node), "_parameters"):
            nodes[id(node)], parts = node, list(inside(node))
            made_of[id(node)] = [id(part) for part in parts]
            stack += parts
    found, more = set[int](), {number for number, node in nodes.items() if _divides(node)}
    while more:
        found |= more
        more = {n for n, parts in made_of.items() if n not in found and not found.isdisjoint(parts)}
    return frozenset(found)


def _divides(node: Any) -> bool:
    names = {kind.__name__ for kind in type(node).__mro__}
    operands = dict(zip(type(node)._parameters, node.operands, strict=False))
    if _SORTS in names:
        return operands.get("user_divisions") is None
    return _DIVIDES in names and operands.get("partition_size") is not None
