"""Tasks that wait for a lock of Dask's that another task of their process has.

`SerializableLock` guards files and libraries that can serve one at a time: `da.store` takes one
around each piece that it writes, xarray (a copy of the class) around all that goes through HDF5.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from threading import get_ident
from types import FrameType, ModuleType
from typing import Any, Final

from dask.utils import SerializableLock

from stageprof_runtime.arrival import arrived
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import address, place
from stageprof_runtime.event import SPAN
from stageprof_runtime.lines import user_line
from stageprof_runtime.patch import Emit, Undo, replace, together
from stageprof_runtime.probes.stacks import running
from stageprof_runtime.ring import SHORT_NS
from stageprof_runtime.stage import STEP

#: Where xarray has its copy.
_XARRAYS: Final = "xarray.backends.locks"


def install(emit: Emit) -> Undo:
    """Time tasks that wait for such a lock from now on."""
    wait = functools.partial(_waited, emit)
    undos = [replace(*place(name), wait) for name in ("lock.acquire", "lock.enter")]
    undos.append(arrived([_XARRAYS], lambda _, module: _copied(module, wait)))
    return together(undos)


def _copied(module: ModuleType, wait: Callable[..., Any]) -> Iterator[Undo]:
    """The copy of Dask's lock that a library has, if it is one."""
    copy = getattr(module, SerializableLock.__name__, None)
    if isinstance(copy, type) and copy is not SerializableLock:
        names = (name for name in ("acquire", "__enter__") if name in vars(copy))
        yield from (replace(copy, name, wait) for name in names)


def _waited(emit: Emit, take: Callable[..., Any]) -> Callable[..., Any]:
    def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
        if get_ident() not in running or not self.lock.locked():
            return take(self, *args, **kwargs)
        start = now_ns()
        try:
            return take(self, *args, **kwargs)
        finally:
            stop = now_ns()
            if stop - start >= SHORT_NS:
                held_up(emit, sys._getframe(1), type(self).__name__, start, stop)

    return timed


def held_up(emit: Emit, caller: FrameType, what: str, start: int, stop: int) -> None:
    """The calling thread's task waited for others: for a lock that another holds, say."""
    thread = get_ident()
    label = "{}:{} {}".format(*user_line(caller), what)
    row = (SPAN, STEP["wait.resource"], start, stop, thread, label, 0)
    role, _ = running[thread]
    if role == "worker":
        from distributed import get_worker

        emit.row_of(role, address(get_worker()), row)
    else:
        emit.row(role, row)
