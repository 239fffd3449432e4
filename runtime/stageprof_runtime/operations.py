"""How many operations an expression or a graph consists of: what an optimizer has to go through.

An expression counts as one, a high-level graph as its layers. Nothing is materialized, and of
other people's objects nothing is asked.
"""

from __future__ import annotations

from typing import Any, Final

from stageprof_runtime.classes import Known
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import MARK
from stageprof_runtime.kinds import is_a
from stageprof_runtime.patch import Emit

#: Operations counted: a graph of more is said to have so many. Counting takes a millisecond then.
MOST: Final = 5_000

_EXPR, _GRAPH, _OTHER = 1, 2, 0
#: of each class what it is
_known: Final = Known()


def operations(x: object) -> int:
    """Operations of an expression or graph, `MOST` at most; 0 if it is neither."""
    found, stack, seen = 0, [x], set[int]()
    while stack and found < MOST:
        node = stack.pop()
        kind = _kind(node)
        if kind == _OTHER or id(node) in seen:
            continue
        seen.add(id(node))
        if kind == _GRAPH:
            found += _length(node, "layers")
            continue
        found += 1
        operands = _attribute(node, "operands")
        if type(operands) is list:
            stack += operands
    return min(found, MOST)


def optimized(emit: Emit, role: str, step: int, before: int, after: object) -> None:
    """Emit how many operations an optimizer was given, and how many it made of them."""
    emit.row(role, (MARK, now_ns(), "optimized", f"{step} {before} {operations(after)}"))


def _kind(x: object) -> int:
    kind = _known.numbers.get(id(type(x)))
    return _known.remember(type(x), _judge(x)) if kind is None else kind


def _judge(x: object) -> int:
    if is_a(x, "dask._expr", "Expr"):
        return _EXPR
    return _GRAPH if is_a(x, "dask.highlevelgraph", "HighLevelGraph") else _OTHER


def _attribute(x: object, name: str) -> Any:
    """An attribute as it is stored; None if it is not."""
    try:
        return object.__getattribute__(x, "__dict__").get(name)
    except AttributeError:
        return None


def _length(x: object, name: str) -> int:
    stored = _attribute(x, name)
    return len(stored) if type(stored) is dict else 0
