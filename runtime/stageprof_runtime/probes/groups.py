"""Groups of chunked arrays that xarray reduces one by one, each with tasks of its own.

It does so where flox, which reduces all at once, is not installed or is switched off. xarray's own
question whether flox is to be used is asked anew; a reduction that flox does not know is left out.
Seen in xarray 2024.9 to 2026.9.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from stageprof_runtime.arrival import arrived
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import MARK
from stageprof_runtime.lines import user_line
from stageprof_runtime.patch import Emit, Undo, replace

#: The mark: "<why> <groups> <pieces> <file>:<line>".
ONE_BY_ONE: Final = "one by one"
#: Why there is no flox: it is not installed; the user said that it is not to be used.
MISSING, OFF = "missing", "off"

_MODULE: Final = "xarray.core.groupby"
#: What grouped arrays and data sets are reduced with, each group by itself.
_OWNERS: Final = ("DataArrayGroupByBase", "DatasetGroupByBase")
#: What flox reduces: the functions of xarray by which the others are.
_KNOWN: Final = frozenset(
    {"array_all", "array_any", "count", "max", "mean", "min", "prod", "std", "sum", "var"}
)


def install(emit: Emit) -> Undo:
    """Note each reduction of groups, one by one, of arrays that Dask computes."""
    return arrived([_MODULE], lambda _, module: _wrapped(emit, module))


def _wrapped(emit: Emit, module: ModuleType) -> Iterator[Undo]:
    for name in _OWNERS:
        owner = getattr(module, name, None)
        if hasattr(owner, "reduce"):
            yield replace(owner, "reduce", lambda f: _noting(emit, f))


def _noting(emit: Emit, reduce: Callable[..., Any]) -> Callable[..., Any]:
    def noted(self: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
        why = _why() if getattr(func, "__name__", "") in _KNOWN else ""
        pieces = _pieces(self._obj) if why else 0
        if pieces:
            file, line = user_line(sys._getframe(1))
            label = f"{why} {len(self)} {pieces} {file}:{line}"
            emit.row("client", (MARK, now_ns(), ONE_BY_ONE, label))
        return reduce(self, func, *args, **kwargs)

    return noted


def _why() -> str:
    """Why xarray does without flox; "" where it might use it."""
    if find_spec("flox") is None:
        return MISSING
    from xarray import get_options

    options: dict[str, Any] = get_options()  # type: ignore[no-untyped-call]
    return "" if options["use_flox"] else OFF


def _pieces(grouped: Any) -> int:
    """Chunks of what is grouped, of all variables of a data set; 0 where it is in memory."""
    variable = getattr(grouped, "variable", None)
    variables = grouped.variables.values() if variable is None else [variable]
    # What `data` is may be read from a file when it is asked for.
    return sum(getattr(each._data, "npartitions", 0) for each in variables)
