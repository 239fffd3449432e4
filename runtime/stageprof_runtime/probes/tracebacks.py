"""The tracebacks that Dask shortens for its users, without the frames of our wrappers as well.

Dask leaves out its own frames of an error that comes out of a computation, so that users see
theirs; `admin.traceback.shorten` says which. Between Dask's frames stand those of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from stageprof_runtime.compat import place
from stageprof_runtime.patch import Emit, Undo, replace
from stageprof_runtime.tree import is_ours


def install(emit: Emit) -> Undo:
    """Leave our frames out from now on."""
    return replace(*place("traceback.shorten"), lambda raw: staticmethod(_shorter(raw.__func__)))


def _shorter(shorten: Callable[[TracebackType], Any]) -> Callable[[TracebackType], Any]:
    def shorter(traceback: TracebackType) -> Any:
        leave_out(traceback)
        return shorten(traceback)

    return shorter


def leave_out(traceback: TracebackType) -> None:
    """Take frames of ours out of a traceback, but for its first and its last."""
    kept = traceback
    while (here := kept.tb_next) is not None:
        if here.tb_next is not None and is_ours(here.tb_frame.f_code.co_filename):
            kept.tb_next = here.tb_next
        else:
            kept = here
