"""Which exceptions tasks raise, and where: a retried task leaves no other trace of its own."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final

from dask.utils import key_split

from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import MARK
from stageprof_runtime.lines import USER, kind
from stageprof_runtime.patch import Emit

#: Frames of a traceback that are looked at; a recursion that ended in an error has more.
DEEP: Final = 100
_TRACEBACK: Final[Any] = vars(BaseException)["__traceback__"]


def failed(emit: Emit, key: object, error: Any) -> None:
    """A task's function has ended with an exception."""
    if not isinstance(error, BaseException):
        return
    file, line = _raised(error)
    label = "\t".join((type(error).__name__, key_split(key), f"{file}:{line}" if file else ""))
    emit.row("worker", (MARK, now_ns(), "task failed", label))


def _raised(error: BaseException) -> tuple[str, int]:
    """The innermost of the user's own lines in the traceback; ("", 0) if there is none."""
    # the slot itself: a class may have put something else in its way
    at: TracebackType | None = _TRACEBACK.__get__(error)
    found = "", 0
    for _ in range(DEEP):
        if at is None:
            break
        file = at.tb_frame.f_code.co_filename
        if kind(file) == USER:
            found = file, at.tb_lineno
        at = at.tb_next
    return found
