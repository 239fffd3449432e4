"""Samples of an event loop: how late it was, and how busy.

`loop.stall_s` says that the loop could do nothing for so long, up to that instant: something held
the GIL, or the loop itself was in one long step. `loop.cpu_s` is what its thread has used of a
processor so far. Dask has a timer on each server's loop which asks the same; ours is called with
it, for every time that a loop wakes costs more than all that is done here. Where Dask's is missing
or slow, a timer of our own asks. Nothing of it depends on another thread's getting the GIL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.event import SAMPLE
from stageprof_runtime.guard import SELDOM, Watch, caught
from stageprof_runtime.patch import Undo, observe_item
from stageprof_runtime.ring import Ring

#: Seconds between two looks of a timer of ours, as Dask's has it; some 10 microseconds each.
PERIOD_S: Final = 0.02
#: A timer is late by less than this in a healthy process: Python gives the GIL away every 5 ms.
LATE_NS: Final = 10_000_000
#: How often the processor time is told, ns.
EVERY_NS: Final = 250_000_000
#: How often the loop is said to have come, ns: with every fifth look or so.
COMES_NS: Final = 90_000_000


class Ticks:
    """Watches the loop of one server, on its own thread."""

    def __init__(
        self, loop: Any, ring: Ring, watch: Watch, comes: Callable[[], None] = lambda: None
    ) -> None:
        self._loop = loop
        self._ring = ring
        self._watch = watch
        #: called on the loop, ten times a second
        self._comes = comes
        self._over = False
        self._due = self._told = self._came = 0

    def start(self, timer: Any = None) -> Undo:
        """Begin, with a timer of the loop's or one of our own; to be called on the loop's thread.

        Returns what ends it, from any thread.
        """
        if timer is None:
            self._next(now_ns())
            return self._stop
        period = round(timer.callback_time * 1e6)
        self._due = now_ns() + period
        return observe_item(vars(timer), "callback", lambda f, watch: self._with(f, period, watch))

    def _stop(self) -> None:
        self._over = True

    def _with(self, callback: Callable[[], Any], period: int, watch: Watch) -> Callable[[], Any]:
        """A timer's callback, with a look before it.

        Such a timer is due at multiples of a period; when one was missed, at the next.
        """

        def looked() -> Any:
            if not watch.disabled:
                now = now_ns()
                watch.calls = calls = watch.calls + 1
                try:
                    late = max(now - self._due, 0)  # when it is due first, only the timer knows
                    self._due = now - late + (late // period + 1) * period
                    self.note(now, late, thread_ns)
                    if not calls % SELDOM:
                        watch.took(now_ns() - now, SELDOM)
                except BaseException as error:
                    caught(error, watch)
            return callback()

        return looked

    def _next(self, now: int) -> None:
        self._due = now + round(PERIOD_S * 1e9)
        self._loop.call_later(PERIOD_S, self._tick)

    def _tick(self) -> None:
        if self._over or self._watch.disabled:
            return
        try:
            now = now_ns()
            self.note(now, now - self._due, thread_ns)
            self._next(now)
        except BaseException as error:  # a loop's callback that fails would be logged as Dask's
            self._watch.failed(error)

    def note(self, now: int, late: int, cpu: Callable[[], int]) -> None:
        """The loop came to its timer this late, ns."""
        if late >= LATE_NS:
            self._ring.emit((SAMPLE, now, "loop.stall_s", late / 1e9))
        if now - self._told >= EVERY_NS:
            self._told = now
            self._ring.emit((SAMPLE, now, "loop.cpu_s", cpu() / 1e9))
        if now - self._came >= COMES_NS:
            self._came = now
            self._comes()
