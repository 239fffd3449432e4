"""Step `import`: a module imported for the first time while a stage of Dask is running."""

from __future__ import annotations

import sys
import threading
from typing import Any

from stageprof_runtime import lines
from stageprof_runtime.arrival import as_import
from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import place
from stageprof_runtime.context import inside
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.patch import Emit, Undo, observe
from stageprof_runtime.stage import IMPORT, Stage

#: Imports shorter than this are part of the step around them.
LEAST_NS = 1_000_000


class _Depth(threading.local):
    n = 0


def install(emit: Emit) -> Undo:
    """Time the outermost import on each thread, and charge it to the stage around it."""
    depth = _Depth()

    def make(find_and_load: Any, watch: Watch) -> Any:
        def _find_and_load(name: str, import_: Any) -> Any:
            if depth.n or watch.disabled:
                return find_and_load(name, import_)
            start = now_ns()
            try:
                depth.n = 1
                return find_and_load(name, import_)
            finally:
                depth.n = 0
                stop = now_ns()
                if stop - start >= LEAST_NS:
                    attempt(watch, _emit, emit, name, start, stop)

        return as_import(_find_and_load)

    return observe(*place("python.import"), make)


def _emit(emit: Emit, name: str, start: int, stop: int) -> None:
    role, stage = inside.at
    if stage is None:
        # No probe is around: it is Dask's doing if one of Dask's frames is on the stack.
        if not lines.in_dask(sys._getframe()):
            return
        role, stage = "client", Stage.CONSTRUCTION
    emit.span(role, IMPORT[stage], start, stop, name)
