"""The program beside a process: sees who holds the process's GIL, and who waits for it.

It runs by itself, with the modules that it is made of as its input (see `program`), and imports the
standard library only. About `rate` times a second (half of it while less than half a thread waits
on average, or no two run tasks; a quarter while none waits, an eighth while the GIL is free; once
it knows how often the GIL is taken half of these, and so on: see `LONG_NS`) it reads from the
other's memory which thread has the GIL, and from the kernel which threads wait within the GIL's own
lock. It stops nobody and takes no lock of the other's. Both have the same monotonic clock. What it
saw leaves by standard output (see `messages`); on standard input come lines ``thread-id identifier
wanted`` of the threads to look at, and `TASKS` once two threads run tasks. From then on py-spy says
where the holders are while threads wait. Where C frames are wanted `NATIVE` comes while tasks run:
then another py-spy looks at those, which does stop the process.

It ends when it is told so, its input does or its parent has gone, and py-spy ends with it.
"""

from __future__ import annotations

import os
import select
import struct
import sys
import time

from stageprof_runtime.gil.looking import States, Target
from stageprof_runtime.gil.messages import (
    COST,
    END,
    INTERVAL,
    NATIVE,
    REST,
    RESTED,
    SUMS,
    TASKS,
    Out,
)
from stageprof_runtime.gil.spying import LAST_S, Spy
from stageprof_runtime.gil.unwinding import RATE, Unwinder

#: As `typing` has it; importing that would take longer than all else that the watch does first.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: While hardly any look finds the GIL taken one of so many is enough; and of so many while hardly
#: any finds a thread that waits; while fewer wait than `WORTH`, or no two run tasks; and at first.
#: A look takes 0.2 ms where others fill the caches.
SELDOM, LESS, SOME, FIRST = 8, 4, 2, 2
HARDLY: Final = 0.05
#: So many threads seen to wait by looks that are rarer make them frequent at once.
STARTLED: Final = 2
#: Each time that it has looked for three times as long (ns) it looks half as often: beside tasks
#: that fill the processors each look delays one.
LONG_NS: Final = (1_500_000_000, 4_500_000_000, 13_500_000_000)
#: But not before it is known with this standard error in which part of the time the GIL is taken,
#: and so within five points: for 20 % that takes 256 looks.
KNOWN: Final = 0.025
#: No look is further than this (ns) from the one before, on average.
SELDOMMEST_NS: Final = 160_000_000
#: Nanoseconds between two messages.
EVERY_NS: Final = 500_000_000
#: So many threads that wait, on average over half a second, are worth py-spy's cost: more than a
#: worker's event loop beside the one thread of its tasks.
WORTH: Final = 0.5


class Watch:
    """Looks, and tells, until there is nobody to look at or to tell."""

    def __init__(self, target: Target, spy: Spy, rate: int) -> None:
        self._target, self._spy = target, spy
        #: that and, once they are wanted, the one for C frames
        self._spies = [spy]
        self._out = Out(1)
        self._often = 1_000_000_000 // rate
        self._period = FIRST * self._often
        self._rare = True
        self._now = self._told = time.perf_counter_ns()
        self._states = States(self._now)
        self._began = self._now
        #: looks so far, and those that found the GIL taken
        self._looks = self._held = 0
        self._late = 0
        self._tasks = False

    def run(self) -> None:
        """Until the input ends or the process has gone."""
        due, said = self._now, b""
        while os.getppid() == self._target.pid:
            # Looks at equal distances would beat with the interpreter's own switch interval.
            due = max(self._now, due + self._period * (64 + os.urandom(1)[0]) // 192)
            ready = self._wait(due)
            self._now = time.perf_counter_ns()
            if 0 in ready:
                chunk = os.read(0, 65536)
                if not chunk:
                    return
                *lines, said = (said + chunk).split(b"\n")
                if END in lines:
                    return
                self._threads(lines)
            for spy in self._spies:
                if any(file in ready for file in spy.files):
                    self._stood(spy.listen(self._now))
            self._now = time.perf_counter_ns()  # what was told may have taken long
            self._look(due)

    def _wait(self, due: int) -> list[int]:
        pause = max(0.0, (due - time.perf_counter_ns()) / 1e9)
        files = [file for spy in self._spies for file in spy.files]
        return select.select([0, *files], [], [], pause)[0]

    def _threads(self, lines: list[bytes]) -> None:
        for line in lines:
            if line == TASKS:
                self._tasks = True
                continue
            if line == NATIVE:
                self._unwind()
                continue
            if line == REST:
                self._rest()
                continue
            native, ident, wanted = (int(word) for word in line.split())
            self._target.add(native, ident, bool(wanted))

    def _unwind(self) -> None:
        """Have py-spy look at C frames, if it does not."""
        if len(self._spies) == 1:
            self._spies.append(Unwinder(self._spy.program, self._target.pid, RATE))
        self._spies[1].start()

    def _rest(self) -> None:
        """Have it look no more, and tell what it saw."""
        self._finish(self._spies[1:])
        self._out.text({RESTED: True})
        self.tell()

    def _finish(self, spies: list[Spy]) -> None:
        """End what runs of these, and tell what they saw."""
        for spy in spies:
            spy.ask()
        for spy in spies:
            self._stood(spy.stop())
            if spy.missed and not spy.refused:
                self._out.text({spy.refusal: spy.missed})

    def _look(self, due: int) -> None:
        self._late += self._now - due > self._period
        self._states.see(self._now, self._target.look(self._now))
        startled = self._rare and self._states.waiting >= STARTLED
        if self._now - self._told >= EVERY_NS or startled:
            self.tell()

    def tell(self) -> None:
        """Send what was seen since the last time, and see whether py-spy is worth its cost."""
        states, out = self._states, self._out
        states.close(self._now)
        for row in states.rows:
            out.add(INTERVAL, *row)
        out.add(SUMS, states.looks, states.held, states.waiting, 0)
        spent = os.times()
        own = time.process_time_ns()
        spied = int((spent.children_user + spent.children_system) * 1e9)
        out.add(COST, own, spied, self._late, out.dropped)
        for spy in self._spies:
            if spy.refused != spy.told:
                spy.told = spy.refused
                out.text({spy.refusal: spy.told})
        # A message that came early came for what was seen last, which says nothing of the rest.
        whole = self._now - self._told >= EVERY_NS
        many = states.waiting >= WORTH * states.looks
        several = self._tasks and many  # else it is an event loop that waits, beside one task
        if several and whole:
            self._spy.start()
        idle = states.held <= HARDLY * states.looks
        self._rare = states.waiting <= HARDLY * states.looks
        of = SELDOM if idle else LESS if self._rare else 1 if several else SOME
        if self._known(states.looks, states.held):
            of <<= sum(self._now - self._began > long for long in LONG_NS)
        self._period = min(self._often * of, SELDOMMEST_NS)
        states.rows, states.looks, states.held, states.waiting = [], 0, 0, 0
        self._told = self._now
        out.flush()

    def _known(self, looks: int, held: int) -> bool:
        """Whether so many looks more are enough to say how often the GIL is taken."""
        self._looks += looks
        self._held += held
        free = self._looks - self._held
        return self._held * free <= KNOWN**2 * self._looks**3

    def _stood(self, seen: object | None) -> None:
        if seen is not None:
            self._out.text(seen)

    def end(self) -> None:
        """Tell the rest; the reader has as long as py-spy had."""
        self.tell()
        self._finish(self._spies)
        self.tell()
        self._out.flush(time.monotonic() + LAST_S)

    def kill(self) -> None:
        """Leave no py-spy behind."""
        for spy in self._spies:
            spy.kill()


def main(pid: str, holder: str, ident: str, rate: str, spy: str) -> int:
    """Watch; the exit status is 3 where the process's memory may not be read."""
    seeing = Spy(spy, int(pid), int(rate))
    try:
        target = Target(int(pid), int(holder), int(ident))
    except OSError as error:
        sys.stderr.write(f"the process may not be looked at: {error.strerror}\n")
        return 3
    watch = Watch(target, seeing, int(rate))
    try:
        watch.run()
        watch.end()
    except (OSError, struct.error):  # the process, or the reader, has gone
        pass
    finally:
        watch.kill()
    return 0
