"""Looking at the region's thread from outside: what of construction nothing else can see.

Dask offers no hook for collection methods, tokenizing and meta inference, so a thread of ours
looks at the stack of the region's thread every `PERIOD_S` at first and says, from Dask's frames on
it, which step it is in; frames of the user's alone are `outside` and give no span.

The stacks that it sees are told, too, by step (`event.FLAME`); each stands for half the time to the
look before it and half the time to the one after.

A profiler inside the thread (`sys.setprofile`, pyinstrument's) was measured to double the time
of a loop of `delayed` calls; looking from outside costs most programs about one in a hundred, and
some more that give the GIL up very often (the figures are in docs/profiles.md).
"""

from __future__ import annotations

import asyncio
import sys
import threading
from threading import get_ident
from types import FrameType
from typing import Any, Final, NamedTuple

from stageprof_runtime.batch import Row
from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.context import waiting
from stageprof_runtime.event import BLOCK, LOCK, SAMPLED, SPAN
from stageprof_runtime.guard import Watch, attempt
from stageprof_runtime.looker import GOLDEN, for_bytecode
from stageprof_runtime.probes.stacks import running
from stageprof_runtime.ring import Ring
from stageprof_runtime.seen import LOCKED, LOOPS, WAITS, is_dasks, look, loops_of
from stageprof_runtime.stage import OUTSIDE
from stageprof_runtime.standstill import uncollected
from stageprof_runtime.stem import Stem, frames_of
from stageprof_runtime.stopped import clock_of, idle, used_ns, work
from stageprof_runtime.tree import Spot, spots

#: Seconds between two looks.
PERIOD_S = 0.02
#: After so many since it waited in Dask last, which are 5 s, half as often, and after as many more
#: half of that: what began so long ago is told as well by fewer.
OFTEN: Final = 250
#: That the thread waits for others is told when it has for so long, and each time as much later.
LONG_NS: Final = 1_000_000_000
#: A gap this many periods long means that the thread held the GIL in one C call: the call just
#: returned when we could look, so the gap belongs to what is seen now.
LATE = 2.0


class Stood(NamedTuple):
    """Where the thread was seen: the step, what it did, and its stack."""

    step: int
    how: str
    stack: list[Spot]


class Sampler:
    """Looks at one thread and emits the spans of construction, and the stacks, that it sees."""

    def __init__(
        self,
        ring: Ring,
        thread: int,
        task: Any = None,
        depth: int = 0,
        stem: Stem | None = None,
        loops: int = 0,
    ) -> None:
        self._ring = ring
        self._thread = thread
        self._task = task
        self._depth = depth
        self._loops = loops
        self._stem = stem or Stem([])
        self._clock = clock_of(thread) if thread == get_ident() else 0
        self._used = used_ns(self._clock)
        self._stop = threading.Event()
        self._state: tuple[int, str] = (0, "")
        #: where the thread stood when it was looked at last, and ns before that which are for it
        self._stood: Stood | None = None
        self._stood_ns = 0
        self._since = self._last = now_ns()
        self.watch = Watch("sampler")
        #: nanoseconds of a processor that its thread used, and looks taken
        self.cost_ns = 0
        self.looks = 0
        self._period_s = PERIOD_S
        self._worker = threading.Thread(target=self._run, name="stageprof-sampler", daemon=True)

    @classmethod
    def here(cls, ring: Ring, task: Any = None) -> Sampler:
        """A sampler of the calling thread, started."""
        frames = frames_of(sys._getframe())
        inside = any(is_dasks(f.f_code) for f in frames)
        depth = len(frames) if inside else 0
        sampler = cls(ring, get_ident(), task, depth, Stem(frames), loops_of(frames))
        sampler._worker.start()
        return sampler

    def stop(self) -> None:
        """Stop looking and emit what is open; returns when the thread is gone."""
        self._stop.set()
        waiting.tell()
        if self._worker.is_alive():
            self._worker.join()

    def _run(self) -> None:
        asked, awake = now_ns(), 0
        while not self._stop.wait(self._period_s) and not self.watch.disabled:
            start = now_ns()
            attempt(self.watch, self._once, start, (start - asked) / 1e9 - self._period_s)
            self.looks += 1
            awake += 1
            self._period_s = PERIOD_S * (1 << min(awake // OFTEN, 2))
            self.cost_ns = thread_ns()  # with what it takes to wake
            if self._thread in waiting:
                self._rest()
                awake = 0
            asked = now_ns()
        attempt(self.watch, self._end, now_ns())

    def _rest(self) -> None:
        """The thread waits in Dask, mostly for much longer than our period.

        The first look after it comes at any part of a period, or what a loop does between its waits
        would be seen always or never.
        """
        waiting.until(self._stop.is_set, self._thread)
        self._last = now_ns()
        self._period_s = PERIOD_S * (self.looks * GOLDEN % 1)

    def _once(self, t: int, late_s: float) -> None:
        state, stood = self._look(t, waited=for_bytecode(late_s, 1))
        self.stand(stood, t)
        self.see(state, t)

    def _end(self, t: int) -> None:
        self.stand(None, t)
        self.see((0, ""), t)

    def _look(self, t: int, *, waited: bool) -> tuple[tuple[int, str], Stood | None]:
        if self._thread in waiting:
            return (0, ""), None
        if self._task is not None and asyncio.current_task(self._task.get_loop()) is not self._task:
            return (0, ""), None
        with uncollected():
            frames = frames_of(sys._current_frames().get(self._thread))
            step, line = look(frames, self._depth, self._loops)
            if step == LOOPS:
                return (LOCKED, ""), None
            if step == WAITS or not frames or self._thread in running:  # others look at tasks
                return (max(step, 0), line), None
            at = step if step > 0 else OUTSIDE
            return (step, line), self._stack(frames, at, t, waited=waited)

    def _stack(self, frames: list[FrameType], step: int, t: int, *, waited: bool) -> Stood | None:
        stack = spots(self._stem.rest(frames))
        if not stack:  # the region is just beginning or ending
            return None
        used, before = used_ns(self._clock), self._used
        self._used = used
        wall = t - self._last
        if min(before, used) >= 0 and step != OUTSIDE:
            # of other looks the clock was not read
            self._ring.cpu(step, wall, min(used - before, wall))
        idling = before >= 0 and idle(used - before, wall, 1)
        how = work(frames[0], "", waited=waited, idling=idling)
        return Stood(step, how, stack)

    def stand(self, stood: Stood | None, t: int) -> None:
        """The thread stood there at `t`; to be called before `see`."""
        gap = max(t - self._last, 0)
        mine = gap if self._late(t) else gap // 2
        if self._stood is not None:
            step, how, stack = self._stood
            self._ring.flame(step, "", how, stack, self._stood_ns + gap - mine)
        self._stood, self._stood_ns = stood, mine

    def _late(self, t: int) -> bool:
        return t - self._last > LATE * max(self._period_s, PERIOD_S) * 1e9

    def see(self, state: tuple[int, str], t: int) -> None:
        """The thread was seen in a state at `t`; a change closes the span before it."""
        late, last, self._last = self._late(t), self._last, t
        step, line = self._state
        change = last if late else (last + t) // 2
        if state == self._state:
            if step != LOCKED or t - self._since < LONG_NS:
                return
            change = t  # the program may be killed while it waits
        if step and change > self._since:
            self._ring.emit(self._row(step, self._since, change, line))
        self._state, self._since = state, change

    def _row(self, step: int, start: int, stop: int, line: str) -> Row:
        """What it was in from `start` to `stop`."""
        if step == LOCKED:
            return BLOCK, start, stop, self._thread, LOCK, 0, 0, 0, ""
        return SPAN, step, start, stop, self._thread, line, SAMPLED
