"""What a collection given to a training is like: its pieces, and whether they are in memory.

Read from what the collection knows of itself; nothing is computed, and no graph is built for it.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Any, Final, NamedTuple

from distributed import Client

from stageprof_runtime.compat import wanted

#: Keys and layers looked at; more than these tell nothing new.
LOOK: Final = 1000


class Facts(NamedTuple):
    """As the fields of the same names in `event.FIELDS[TRAIN]`."""

    name: str = ""
    type: str = ""
    pieces: int = 0
    column_pieces: int = 0
    merged: int = 0
    rows: int = -1
    width: int = -1
    nbytes: int = -1
    held: int = -1
    pending: int = 0


def facts_of(data: Any) -> Facts:
    """The facts of a Dask array or DataFrame; empty for anything else."""
    module = type(data).__module__
    if not isinstance(module, str):
        return Facts()
    if module.startswith("dask.array.") and type(data).__name__ == "Array" and data.ndim:
        return _array(data)
    if module.startswith("dask.dataframe.") and hasattr(data, "npartitions"):
        return _frame(data)
    return Facts()


def _array(x: Any) -> Facts:
    layers = getattr(x.dask, "layers", None) or {}
    columns = x.numblocks[1] if x.ndim > 1 else 1
    held, pending = _held([_keys(layers[n]) for n in _roots(x.dask)]) if layers else (-1, 0)
    return Facts(
        x.name,
        "Array",
        x.numblocks[0],
        columns,
        _merged(x.dask, layers) if columns == 1 else 0,
        _whole(x.shape[0]),
        _whole(math.prod(x.shape[1:])),
        _whole(math.prod(x.shape) * x.dtype.itemsize),
        held,
        pending,
    )


def _frame(x: Any) -> Facts:
    width = len(x.columns) if x.ndim > 1 else 1
    held, pending = _held([_persisted(leaf) for leaf in _leaves(x.expr)])
    name = str(x.expr._name)
    return Facts(name, "DataFrame", x.npartitions, 1, 0, -1, width, -1, held, pending)


def _whole(number: Any) -> int:
    """A size, -1 where Dask does not know it."""
    return int(number) if math.isfinite(number) else -1


# -- whether the pieces are in memory -----------------------------------------------------------


def _held(sources: list[list[Any]]) -> tuple[int, int]:
    """Whether all sources are futures' keys (1 or 0; -1 unknown), and how many are not done."""
    try:
        futures = wanted(Client.current())
    except ValueError:
        return -1, 0
    keys = [key for source in sources for key in source]
    if not sources or not all(sources) or not all(key in futures for key in keys):
        return 0, 0
    return 1, sum(futures[key].status == "pending" for key in keys)


def _roots(graph: Any) -> list[str]:
    """Layers that need no other."""
    return [name for name, needs in islice(graph.dependencies.items(), LOOK) if not needs]


def _keys(layer: Any) -> list[Any]:
    """The first keys of a layer that is made already; none of one that is not."""
    mapping = getattr(layer, "mapping", None)
    return list(islice(mapping, LOOK)) if type(mapping) is dict else []


def _leaves(expr: Any) -> list[Any]:
    """Expressions that need no other."""
    return [e for e in islice(expr.walk(), LOOK) if not e.dependencies()]


def _persisted(leaf: Any) -> list[Any]:
    """The keys of what was persisted; none of an expression that is still to be run."""
    if type(leaf).__name__ != "FromGraph":
        return []
    return list(islice(leaf.operand("keys"), LOOK))


# -- columns that were split before -------------------------------------------------------------


def _merged(graph: Any, layers: Any) -> int:
    """Into how many pieces the columns were split before the graph puts them together; or 0."""
    most = 0
    for name, layer in islice(layers.items(), LOOK):
        if name.startswith("rechunk-merge") and _split(layer) == 1:
            most = max([most, *(_split(layers[n]) for n in graph.dependencies[name])])
    return most if most > 1 else 0


def _split(layer: Any) -> int:
    """Pieces along the columns of a layer of two dimensions; 0 if that cannot be told."""
    keys = [k for k in _keys(layer) if type(k) is tuple and len(k) == 3]
    return 1 + max((k[2] for k in keys if type(k[2]) is int), default=-1)
