"""Looking at the threads that run tasks: what kind of work it is, and at which of the user's lines.

A thread of ours looks some 20 times a second at the stacks of the threads that are in a task's
function, on a worker and on the local scheduler with threads. Looks are summed by prefix, line and
kind (see `stack`), and by prefix and stack from the task's function inward (see `tree`); each
stands for the time since the look before. While no task runs, nothing is looked at. Other threads
of the process are never touched, and tasks that the local scheduler sends to other processes are
not seen.
"""

from __future__ import annotations

import sys
from threading import get_ident
from types import FrameType
from typing import Any, Final

from dask.utils import key_split

from stageprof_runtime.looker import Looker, for_bytecode
from stageprof_runtime.nap import Nap
from stageprof_runtime.patch import Emit, Undo
from stageprof_runtime.stack import judge
from stageprof_runtime.stage import STEP
from stageprof_runtime.standstill import uncollected
from stageprof_runtime.stem import frames_of, of_task
from stageprof_runtime.stopped import clock_of, idle, used_ns, work
from stageprof_runtime.tree import spots

#: What the looker is called in the coverage.
NAME: Final = "stacks"
#: thread -> role and key of the task that it runs, of those in this process
running: Final[dict[int, tuple[str, Any]]] = {}
#: thread -> its processor clock, of those that run a task or have
_clocks: Final[dict[int, int]] = {}
_COMPUTE: Final = STEP["compute"]
#: The sleep of the thread that looks, while no task runs.
_nap: Final = Nap()


def begin(role: str, key: object) -> tuple[str, Any] | None:
    """The calling thread begins a task; returns what it was at before, for `end`."""
    thread = get_ident()
    before = running.get(thread)
    running[thread] = (role, key)
    _clocks[thread] = clock_of(thread)
    if _nap.on:
        _nap.end()
    return before


def end(before: tuple[str, Any] | None) -> None:
    """The calling thread's task is over; it is again at the one that had begun it, if any."""
    if before is None:
        running.pop(get_ident(), None)
    else:
        running[get_ident()] = before


def used(thread: int) -> int:
    """What a thread that runs a task has used of processors so far, ns; -1 if it is not known."""
    return used_ns(_clocks.get(thread, 0))


def install(emit: Emit) -> Undo:
    """Look at tasks from now on."""
    looker = Looker(NAME, Tasks(emit).look, lambda: bool(running), _nap)
    looker.start()

    def undo() -> None:
        looker.stop()
        running.clear()
        _clocks.clear()

    return undo


class Tasks:
    """What there is to look at."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        #: thread -> what it had used of processors at the look before
        self._used: dict[int, int] = {}

    def look(self, _: int, ns: int, late_s: float) -> bool:
        """One look at every task; see `looker.Look`."""
        tasks = list(running.items())
        if not tasks:
            return False
        waited = for_bytecode(late_s, len(tasks))
        with uncollected():
            frames = sys._current_frames()
            # At once, and only those asked for: without a GIL they go on meanwhile.
            stood = {thread: frames[thread].f_lasti for thread, _ in tasks if thread in frames}
            # Our own frame is among them and holds them: without this the circle would keep every
            # task's variables alive until the next garbage collection.
            try:
                self._judge(frames, stood, tasks, ns, waited=waited)
            finally:
                frames.clear()
        return True

    def _judge(
        self,
        frames: dict[int, FrameType],
        stood: dict[int, int],
        tasks: list[Any],
        ns: int,
        *,
        waited: bool,
    ) -> None:
        before, self._used = self._used, {}
        for thread, (role, key) in tasks:
            frame = frames.get(thread)
            if frame is not None:
                used = self._used[thread] = used_ns(_clocks.get(thread, 0))
                spent = used - before[thread] if min(used, before.get(thread, -1)) >= 0 else -1
                idling = idle(spent, ns, len(tasks))
                seen = judge(frame, waited=waited, at=stood[thread])
                prefix = key_split(key)
                self._emit.stack(role, prefix, *seen, ns)
                how = work(frame, seen.how, waited=waited, idling=idling, at=stood[thread])
                stack = spots(of_task(frames_of(frame)))
                self._emit.flame(role, _COMPUTE, prefix, how, stack, ns)
