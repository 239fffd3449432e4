"""A thread of ours that looks at other threads' stacks, some 20 times a second, then 10, then 5.

Where there has been nothing to look at for a while it sleeps until there is: to wake costs a
process more than to look. Over its budget it looks once where it looked ten times, then no more.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Final

from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.guard import STRIDE, Watch, attempt
from stageprof_runtime.nap import Nap
from stageprof_runtime.patch import wrapped
from stageprof_runtime.unlocked import unlocked

#: Seconds between two looks, on average. Fifty looks say of a share of one half that it is between
#: 0.36 and 0.64, and 2.5 s of tasks is the least that anybody waits for.
PERIOD_S: Final = 0.05
#: After so many, and 5 s, half as often, and after as many more, and 15 s, half of that: from then
#: on they tell what changes.
OFTEN: Final = 100
#: Looks are apart by the period more or less such a part of it, each length as often and none of
#: them in turns: or they would beat with tasks that take as long as it, or as a few of it.
SPREAD: Final = 0.3
SILVER: Final = 0.414213562373095
#: After so many looks that found nothing it sleeps, or looks half as often where something may come
#: of which nobody tells.
EMPTY: Final = 5
#: Then the first look comes at any part of a period, each part as often: steps of the golden ratio.
#: It stands for a whole period, as what is missed after the last look is for half of one, and half
#: of one is missed before the first.
GOLDEN: Final = 0.618033988749895
#: The GIL was given up by somebody who ran bytecode if it took this many switch intervals to come;
#: beyond, plus one for each thread, C code had held it.
GIVEN, KEPT = 0.5, 2.5

#: A look at `now`, ns: what it stands for, ns, and how long the GIL was waited for, s. It returns
#: whether there was anything to look at.
Look = Callable[[int, int, float], bool]


class Looker:
    """The thread, from `start` to `stop`; its cost and failures are those of the watch `name`.

    With `there` and `nap` it sleeps while there is nothing; who sees something come ends the nap.
    """

    def __init__(
        self,
        name: str,
        look: Look,
        there: Callable[[], bool] = lambda: True,
        nap: Nap | None = None,
    ) -> None:
        self._look = look
        self._there = there
        self._nap = nap or Nap()
        self._over = threading.Event()
        self._watch = wrapped[name] = Watch(name)
        self._looks = self._empty = 0
        self._last = now_ns()
        self._thread = threading.Thread(target=self._run, name=f"stageprof-{name}", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; returns when the thread is gone."""
        self._over.set()
        self._watch.ended = now_ns()
        self._nap.end()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        watch, looking = self._watch, 0
        self._last = now_ns()
        while not watch.disabled:
            self._looks += 1
            pause = self._pause()
            asked = now_ns()
            if self._over.wait(pause):
                return
            start, used = now_ns(), thread_ns()
            late_s = (start - asked) / 1e9 - pause
            attempt(watch, self._once, start, start - self._last, late_s)
            if not self._empty:
                watch.calls += 1
                # Not what the clock on the wall says: waiting for the GIL delays nobody.
                now = thread_ns()
                watch.measured(now - used)
                looking += now - used
                watch.beside_ns = now - looking
            self._last = start

    def _once(self, now: int, ns: int, late_s: float) -> None:
        empty, self._empty = self._empty, 0  # a look that fails has its cost as well
        self._empty = 0 if self._look(now, ns, late_s) else empty + 1

    def _period(self) -> float:
        step = 1 + SPREAD * (2 * (self._looks * SILVER % 1) - 1)
        step *= STRIDE if self._watch.sampled else 1
        return PERIOD_S * step * (1 << min((self._looks - 1) // OFTEN, 2))

    def _pause(self) -> float:
        """Sleep while there is nothing; seconds until the next look."""
        if self._empty < EMPTY:
            return self._period()
        return self._period() * 2 if self._there() else self._rested()

    def _rested(self) -> float:
        """Sleep until there is something; seconds until the first look at it."""
        self._empty = 0
        self._nap.until(lambda: self._over.is_set() or self._there())
        period = self._period()
        pause = period * (self._looks * GOLDEN % 1)
        self._last = now_ns() - round((period - pause) * 1e9)
        return pause


def watch(name: str) -> Watch:
    """What is known of the looker of a name in this process: calls, seconds, failures."""
    return wrapped.setdefault(name, Watch(name))


def for_bytecode(late_s: float, threads: int) -> bool:
    """Whether the GIL was waited for as if somebody who runs bytecode had to give it up.

    Where there is none, nobody waits, and anybody may run bytecode.
    """
    if unlocked():
        return True
    interval = sys.getswitchinterval()
    return GIVEN * interval <= late_s <= (KEPT + threads) * interval
