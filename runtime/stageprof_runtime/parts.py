"""The parts of a graph, told from their classes: tasks, expressions, graphs and layers."""

from __future__ import annotations

from stageprof_runtime.kinds import is_a, package_of

NODE, EXPRESSION, GRAPH, LAYER, OTHER, NOTHING = range(6)
#: class of Dask's -> which part of a graph it is
_parts: dict[type, int] = {}


def part_of(x: object) -> int:
    """Which part of a graph an object of Dask's is."""
    known = _parts.get(type(x))
    if known is None:
        known = _parts[type(x)] = _judge(x)
    return known


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
