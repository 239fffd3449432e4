"""joblib on a cluster: each call of `Parallel` waits for its tasks itself, in no call of Dask's.

scikit-learn's `fit` with `n_jobs`, where joblib's backend is "dask", makes such calls. Its tasks
are handed over on the client's loop, where no frame is the user's: their line is that of the call,
which the loop's callbacks inherit with the context that they were made in.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from threading import get_ident
from types import ModuleType
from typing import Any, Final

from stageprof_runtime.arrival import arrived
from stageprof_runtime.clock import now_ns
from stageprof_runtime.context import waiting
from stageprof_runtime.event import BLOCK
from stageprof_runtime.lines import inherited, user_line
from stageprof_runtime.patch import Emit, Undo, replace
from stageprof_runtime.underway import calls, ended

#: Where `Parallel` is, which joblib exports. Seen in joblib 1.6.
_MODULE: Final = "joblib.parallel"
#: The module of its backend of Dask.
_BACKEND: Final = "joblib._dask"


def install(emit: Emit) -> Undo:
    """Time what waits in joblib, if that is loaded now or later."""
    return arrived({_MODULE}, functools.partial(_entered, emit))


def _entered(emit: Emit, _: str, module: ModuleType) -> Iterator[Undo]:
    parallel = getattr(module, "Parallel", None)
    if parallel is not None:
        yield replace(parallel, "__call__", functools.partial(_waited, emit))


def _waited(emit: Emit, call: Callable[..., Any]) -> Callable[..., Any]:
    def timed(self: Any, iterable: Any) -> Any:
        if type(getattr(self, "_backend", None)).__module__ != _BACKEND:
            return call(self, iterable)
        thread, before = get_ident(), calls.get(get_ident())
        token = inherited.set(user_line(sys._getframe(1)))
        waiting.add(thread)
        start = now_ns()
        try:
            calls[thread] = start, "joblib"
            return call(self, iterable)
        finally:
            ended(thread, before)
            waiting.discard(thread)
            inherited.reset(token)
            # What arrived last is what it waited for.
            emit.row("client", (BLOCK, start, now_ns(), thread, "joblib", 0, 0, 0, ""))

    return timed
