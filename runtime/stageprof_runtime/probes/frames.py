"""What the frames that tasks make hold: the columns of the first few of each prefix."""

from __future__ import annotations

from typing import Any, Final

from dask.utils import key_split

from stageprof_runtime import process
from stageprof_runtime.clock import now_ns
from stageprof_runtime.columns import held
from stageprof_runtime.event import COLUMN
from stageprof_runtime.patch import Emit, Undo

#: Frames looked at of each prefix: partitions are alike.
FIRST: Final = 3
#: Prefixes that are counted.
PREFIXES: Final = 500

#: prefix -> frames looked at so far
_looked: Final[dict[str, int]] = {}


def install(emit: Emit) -> Undo:
    """Look at frames anew; it is the probe of tasks' functions that calls `made`."""
    _looked.clear()
    process.again[install] = lambda _: _looked.clear()
    return _looked.clear


def made(emit: Emit, key: object, result: Any) -> None:
    """A task's function has made a data frame."""
    prefix = key_split(key)
    looked = _looked.get(prefix, 0)
    if looked >= FIRST or (looked == 0 and len(_looked) >= PREFIXES):
        return
    t = now_ns()
    columns = list(held(result))
    if columns:
        _looked[prefix] = looked + 1
    for column in columns:
        row = (column.name, column.dtype, column.kind, len(result), column.nbytes)
        emit.row("worker", (COLUMN, t, prefix, *row))
