"""How often the GIL is taken, told from how long this thread of ours waits for it.

For processes that cannot be watched from outside. A thread sleeps some milliseconds and asks for
the GIL; if bytecode holds it, it comes after a switch interval, if C code does, after that. So a
sleep that ends late found it taken, and so would all have that should have ended meanwhile. What
the thread waited for a processor is taken off where the kernel tells it. Which thread had the GIL
is not to be seen so.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from typing import Final

from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.event import SAMPLE
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.patch import Emit

#: Seconds between two questions, on average; unequal ones, or they would beat with the
#: interpreter's own rhythm.
PERIOD_S: Final = 0.02
#: Part of the switch interval after which the GIL is said to have been taken: a sleep alone ends
#: late by less (0.1 ms of 5), and a larger part would miss that somebody else was about to get it.
TAKEN: Final = 0.1
#: Nanoseconds of questions of one answer.
EVERY_NS: Final = 500_000_000

#: Our own: the module's is the user's, who may have seeded it.
_random: Final = random.Random(0)  # noqa: S311 (nothing is secret)


class Ticker:
    """Asks for the GIL from `start` to `stop`."""

    def __init__(self, emit: Emit, role: str) -> None:
        self._emit = emit
        self._role = role
        self._over = threading.Event()
        self._asked = self._taken = 0
        self._due = self._told = 0
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
        self._due = self._told = now_ns()
        queue = _Queue()
        while not self.watch.disabled:
            self._due += _pause()
            queued = queue.waited()
            if self._over.wait(max(0, self._due - now_ns()) / 1e9):
                break
            attempt(self.watch, self.note, now_ns(), queue.waited() - queued)
        queue.close()

    def note(self, now: int, queued: int) -> None:
        """The thread has the GIL again; `queued` ns of its delay it waited for a processor."""
        taken = now - self._due - queued > TAKEN * sys.getswitchinterval() * 1e9
        self._count(taken=taken)
        while taken and self._due + PERIOD_S * 1e9 < now:  # it would have been asked for again
            self._due += _pause()
            self._count(taken=True)
        self.watch.calls += 1
        self.watch.beside_ns = thread_ns()
        if now - self._told >= EVERY_NS:
            row = (SAMPLE, now, "gil.contention", self._taken / self._asked)
            self._emit.row(self._role, row)
            self._asked, self._taken, self._told = 0, 0, now

    def _count(self, *, taken: bool) -> None:
        self._asked += 1
        self._taken += taken


def _pause() -> int:
    """Nanoseconds to the next question."""
    return round(PERIOD_S * 1e9 * _random.uniform(0.5, 1.5))


class _Queue:
    """How long the calling thread has waited for a processor, ns; 0 where the kernel tells not."""

    def __init__(self) -> None:
        try:
            path = f"/proc/self/task/{threading.get_native_id()}/schedstat"
            self._file = os.open(path, os.O_RDONLY)
        except OSError:
            self._file = -1

    def waited(self) -> int:
        """See the class."""
        if self._file < 0:
            return 0
        return int(os.pread(self._file, 64, 0).split()[1])

    def close(self) -> None:
        """Ask no more."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
