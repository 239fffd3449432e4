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
import threading
from threading import get_ident
from types import FrameType
from typing import Any, Final

from dask.utils import key_split

from stageprof_runtime.clock import now_ns
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.patch import Emit, Undo, wrapped
from stageprof_runtime.stack import judge
from stageprof_runtime.stage import STEP
from stageprof_runtime.standstill import uncollected
from stageprof_runtime.stem import frames_of, of_task
from stageprof_runtime.stopped import clock_of, idle, used_ns, work
from stageprof_runtime.tree import spots

#: Seconds between two looks, on average. Fifty looks say of a share of one half that it is between
#: 0.36 and 0.64, and 2.5 s of tasks is the least that anybody waits for.
PERIOD_S: Final = 0.05
#: Looks follow one another in steps of these times the period, or they would beat with tasks that
#: take as long as it.
STEPS: Final = (0.8, 1.25, 0.95, 1.1, 0.7, 1.2)
#: The GIL was given up by somebody who ran bytecode if it took this many switch intervals to come;
#: beyond, plus one for each thread, C code had held it.
GIVEN, KEPT = 0.5, 2.5

#: thread -> role and key of the task that it runs, of those in this process
running: Final[dict[int, tuple[str, Any]]] = {}
#: thread -> its processor clock, of those that run a task or have
_clocks: Final[dict[int, int]] = {}
_COMPUTE: Final = STEP["compute"]


def begin(role: str, key: object) -> tuple[str, Any] | None:
    """The calling thread begins a task; returns what it was at before, for `end`."""
    thread = get_ident()
    before = running.get(thread)
    running[thread] = (role, key)
    _clocks[thread] = clock_of(thread)
    return before


def end(before: tuple[str, Any] | None) -> None:
    """The calling thread's task is over; it is again at the one that had begun it, if any."""
    if before is None:
        running.pop(get_ident(), None)
    else:
        running[get_ident()] = before


def for_bytecode(late_s: float, threads: int) -> bool:
    """Whether the GIL was waited for as if somebody who runs bytecode had to give it up."""
    interval = sys.getswitchinterval()
    return GIVEN * interval <= late_s <= (KEPT + threads) * interval


def install(emit: Emit) -> Undo:
    """Look at tasks from now on."""
    looker = _Looker(emit)
    looker.thread.start()
    return looker.stop


def watch() -> Watch:
    """What is known of the looker of this process: calls, seconds, failures."""
    return wrapped.setdefault("stacks", Watch("stacks"))


class _Looker:
    """The thread that looks."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._over = threading.Event()
        self._last = now_ns()
        #: thread -> what it had used of processors at the look before
        self._used: dict[int, int] = {}
        self._watch = wrapped["stacks"] = Watch("stacks")
        self.thread = threading.Thread(target=self._run, name="stageprof-stacks", daemon=True)

    def stop(self) -> None:
        """Look no more; returns when the thread is gone."""
        self._over.set()
        if self.thread.is_alive():
            self.thread.join()
        running.clear()
        _clocks.clear()

    def _run(self) -> None:
        watch, looks = self._watch, 0
        while not watch.disabled:
            looks += 1
            pause = PERIOD_S * STEPS[looks % len(STEPS)]
            asked = now_ns()
            if self._over.wait(pause):
                return
            start = now_ns()
            attempt(watch, self._look, start, (start - asked) / 1e9 - pause)
            if running:
                watch.calls += 1
                watch.measured(now_ns() - start)
            self._last = start

    def _look(self, now: int, late_s: float) -> None:
        """One look at every task; `late_s` is how long the GIL was waited for."""
        tasks = list(running.items())
        if not tasks:
            return
        waited = for_bytecode(late_s, len(tasks))
        with uncollected():
            frames = sys._current_frames()
            # Our own frame is among them and holds them: without this the circle would keep every
            # task's variables alive until the next garbage collection.
            try:
                self._judge(frames, tasks, now, waited=waited)
            finally:
                frames.clear()

    def _judge(
        self, frames: dict[int, FrameType], tasks: list[Any], now: int, *, waited: bool
    ) -> None:
        before, self._used = self._used, {}
        for thread, (role, key) in tasks:
            frame = frames.get(thread)
            if frame is not None:
                used = self._used[thread] = used_ns(_clocks.get(thread, 0))
                spent = used - before[thread] if min(used, before.get(thread, -1)) >= 0 else -1
                idling = idle(spent, now - self._last, len(tasks))
                seen = judge(frame, waited=waited)
                prefix = key_split(key)
                self._emit.stack(role, prefix, *seen, now - self._last)
                how = work(frame, seen.how, waited=waited, idling=idling)
                stack = spots(of_task(frames_of(frame)))
                self._emit.flame(role, _COMPUTE, prefix, how, stack, now - self._last)
