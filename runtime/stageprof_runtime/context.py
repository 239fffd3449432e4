"""What the current thread or coroutine is doing, for probes far below the code that knows.

`inside` is per thread: the role and stage of the probe around; an import that happens there is
charged to it. `exchange` is per coroutine and follows work into executors: whether the bytes
being dumped or loaded are a task's data or a result, and for whom.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from threading import get_ident
from types import CodeType
from typing import Any, Final

from stageprof_runtime.lines import DASK, kind
from stageprof_runtime.nap import Nap
from stageprof_runtime.stage import Stage


class _Inside(threading.local):
    #: role and stage; ("", None) where no probe is around
    at: tuple[str, Stage | None] = ("", None)
    #: depth of optimize() calls; only the outermost is a span
    optimizing: int = 0


inside = _Inside()

#: role -> code of the long step that it is in now, for the live view
phase: dict[str, int] = {}


class _Waiting:
    """Threads that wait inside Dask: what they do is known, nobody needs to look at them."""

    def __init__(self) -> None:
        self._threads: set[int] = set()
        self._naps: list[Nap] = []

    def __contains__(self, thread: int) -> bool:
        return thread in self._threads

    def add(self, thread: int) -> None:
        self._threads.add(thread)

    def discard(self, thread: int) -> None:
        self._threads.discard(thread)
        self.tell()

    def tell(self) -> None:
        """Have those in `until` ask again; waits for nobody."""
        for nap in tuple(self._naps):
            nap.end()

    def until(self, over: Callable[[], bool], thread: int) -> None:
        """Sleep until the thread waits no more, or `over` says so after `tell`."""
        nap = Nap()
        self._naps.append(nap)
        while thread in self._threads and not over():
            nap.until(lambda: thread not in self._threads or over())
        self._naps.remove(nap)


waiting = _Waiting()

#: ("data" | "result", address of the receiver or ""), or None
exchange: ContextVar[tuple[str, str] | None] = ContextVar("stageprof_exchange", default=None)

#: Async regions around, the innermost first, and maybe some that are over: their numbers and tasks.
#: Contexts are copied, and live as long as anything that began in them: they keep no task alive.
lanes: ContextVar[tuple[tuple[int, weakref.ref[Any]], ...]] = ContextVar(
    "stageprof_lanes", default=()
)


#: Regions that are not over. Of coroutines' their numbers: what the task awaits of a client is its
#: blocking. Of others' their threads: what the user's coroutines await there blocks them.
regions: Final[list[int]] = []


def begin_lane(number: int, task: Any) -> None:
    """An async region of a task begins; it may end in another context, which cannot change this."""
    around = (each for each in lanes.get() if each[0] in regions)
    lanes.set(((number, weakref.ref(task)), *around))


def lane_number() -> int:
    """Whom a coroutine blocks that awaits something here; 0: no region.

    The async region's number if its own task is running; else the thread of a region, if the task
    is the user's.
    """
    current = next((each for each in lanes.get() if each[0] in regions), None)
    if current is None and get_ident() not in regions:
        return 0
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return 0
    if current is not None:
        return current[0] if task is not None and task is current[1]() else 0
    return get_ident() if task is not None and _is_users(task) else 0


def _is_users(task: asyncio.Task[Any]) -> bool:
    """Whether a task is none of Dask's own, which await futures for clients."""
    code = getattr(task.get_coro(), "cr_code", None)
    return type(code) is CodeType and kind(code.co_filename) != DASK


class within:  # noqa: N801 (used like a function; a class is a third of a generator's cost)
    """Mark the calling thread as being in a stage of a role; with `step`, for the live view too."""

    __slots__ = ("_at", "_before", "_step")

    def __init__(self, role: str, stage: Stage, step: int = 0) -> None:
        self._at, self._step = (role, stage), step

    def __enter__(self) -> None:
        self._before, inside.at = inside.at, self._at
        if self._step:
            phase[self._at[0]] = self._step

    def __exit__(self, *error: object) -> None:
        inside.at = self._before
        if self._step:
            phase.pop(self._at[0], None)
