"""The parts of a graph, told from their classes: tasks, expressions, graphs and layers."""

from __future__ import annotations

from typing import Final

from stageprof_runtime.classes import Known
from stageprof_runtime.kinds import is_a, package_of

NODE, EXPRESSION, GRAPH, LAYER, OTHER, NOTHING = range(6)
#: of each class of Dask's which part of a graph it is
_known: Final = Known()


def part_of(x: object) -> int:
    """Which part of a graph an object of Dask's is."""
    part = _known.numbers.get(id(type(x)))
    return _known.remember(type(x), _judge(x)) if part is None else part


def _judge(x: object) -> int:
    if is_a(x, "dask._task_spec", "TaskRef") or is_a(x, "dask._task_spec", "Alias"):
        return NOTHING
    for part, module, name in (
        (NODE, "dask._task_spec", "GraphNode"),
        (EXPRESSION, "dask._expr", "Expr"),
        (GRAPH, "dask.highlevelgraph", "HighLevelGraph"),
        (LAYER, "dask.highlevelgraph", "Layer"),
    ):
        if is_a(x, module, name):
            return part
    # Futures, clients and actors hold the whole process, and are pickled as their names.
    return NOTHING if package_of(type(x)) == "distributed" else OTHER
