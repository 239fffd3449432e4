"""How often the GIL is taken, told from how long this thread of ours waits for it.

For processes that cannot be watched from outside. A thread sleeps some milliseconds and asks for
the GIL; if bytecode holds it, it comes after a switch interval, if C code does, after that. So a
sleep that ends so late found it taken. Which thread had it is not to be seen so.
"""

from __future__ import annotations

import random
import sys
import threading
from typing import Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import SAMPLE
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.patch import Emit

#: Seconds between two questions, on average; unequal ones, or they would beat with the
#: interpreter's own rhythm.
PERIOD_S: Final = 0.02
#: Part of the switch interval after which the GIL is said to have been taken: a sleep alone ends
#: late by less (0.1 ms of 5; on a busy machine one in fifteen by more), and a larger part would
#: miss that somebody else was about to get it.
TAKEN: Final = 0.1
#: Questions of one answer.
COUNT: Final = 25


class Ticker:
    """Asks for the GIL from `start` to `stop`."""

    def __init__(self, emit: Emit, role: str) -> None:
        self._emit = emit
        self._role = role
        self._over = threading.Event()
        self._asked = self._taken = 0
        self.watch = Watch("gil.ticker")
        self._thread = threading.Thread(target=self._run, name="stageprof-ticker", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more; the thread is gone when it returns."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self.watch.disabled:
            pause = PERIOD_S * random.uniform(0.5, 1.5)  # noqa: S311 (nothing is secret)
            start = now_ns()
            if self._over.wait(pause):
                return
            late = now_ns() - start - round(pause * 1e9)
            attempt(self.watch, self.note, late)

    def note(self, late: int) -> None:
        """A question was answered so late, ns."""
        self._asked += 1
        self._taken += late > TAKEN * sys.getswitchinterval() * 1e9
        self.watch.calls += 1
        if self._asked == COUNT:
            row = (SAMPLE, now_ns(), "gil.contention", self._taken / self._asked)
            self._emit.row(self._role, row)
            self._asked = self._taken = 0
