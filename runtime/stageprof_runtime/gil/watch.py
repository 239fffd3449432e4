"""The program beside a process: sees who holds the process's GIL, and who waits for it.

It runs by itself (``python -I -S -c SOURCE PID HOLDER IDENT RATE SPY``) and imports the standard
library only. About `RATE` times a second (a fifth of it while no thread waits) it reads from the
other's memory which thread has the GIL, and from the kernel which threads wait within the GIL's
own lock. It stops nobody and takes no lock of the other's. Both have the same monotonic clock.
What it saw leaves by standard output as `RECORD`s; on standard input come lines ``thread-id
identifier wanted`` of the threads to look at.
While threads wait for one another py-spy says where in the code the holders are.

It ends when its input does or its parent has gone, and py-spy ends with it.
"""

from __future__ import annotations

import json
import os
import select
import struct
import sys
import time
from typing import Any

#: kind and four numbers; see `INTERVAL` and those after it
RECORD = struct.Struct("<5q")
#: start, stop (ns), thread, whether it waited (1) or held (0) the GIL
INTERVAL = 0
#: looks, those that found the GIL taken, threads that waited for it (sum), unused
SUMS = 1
#: ns of CPU of this program, of py-spy; looks that came late; intervals dropped
COST = 2
#: bytes of JSON that follow
TEXT = 3

#: While no thread waits for the GIL one look of so many is enough.
SELDOM = 5
#: Seconds between two messages.
EVERY_NS = 500_000_000
#: Between two looks so far apart nothing is known of the time between them.
GAP_NS = 200_000_000
#: Bytes of the GIL's state behind the holder in which the addresses of its locks are.
LOCKS = 256
#: Of a second's looks so many with a thread that waits are worth py-spy's cost.
WORTH = 0.1
#: Seconds of one run of py-spy: what it saw is lost if it is killed.
SPELL_S = 60
#: Seconds that py-spy is given to write what it saw.
LAST_S = 1.5
#: Bytes kept for a reader that does not read.
BACKLOG = 1 << 20

HOLDER = struct.Struct("<QI")
IDENTS = struct.Struct("<QQ")


class Target:
    """The process looked at."""

    def __init__(self, pid: int, holder: int, ident: int) -> None:
        self.pid, self._holder, self._ident = pid, holder, ident
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        #: thread id -> identifier, file that says what it waits in (-1: not looked at)
        self.threads: dict[int, tuple[int, int]] = {}
        self.look(os.getpid())

    def look(self, now: int) -> dict[int, int]:
        """Identifier -> 0 of the thread that has the GIL, 1 of those that wait."""
        state, locked = HOLDER.unpack(os.pread(self._memory, HOLDER.size, self._holder))
        seen = dict.fromkeys(self._waiting(), 1)
        if locked & 0xFF and state:
            seen[self._holding(state)] = 0
        return seen

    def _holding(self, state: int) -> int:
        try:
            ident, native = IDENTS.unpack(os.pread(self._memory, 16, state + self._ident))
        except (OSError, struct.error):  # the thread has just ended
            return 0
        if native not in self.threads:
            self.add(native, ident)
        return int(ident)

    def add(self, native: int, ident: int, wanted: bool = True) -> None:  # noqa: FBT001, FBT002
        """Look at a thread from now on."""
        path = f"/proc/{self.pid}/task/{native}/syscall"
        try:
            file = os.open(path, os.O_RDONLY) if wanted else -1
        except OSError:
            return
        old = self.threads.get(native)
        if old and old[1] >= 0:
            os.close(old[1])
        self.threads[native] = ident, file

    def _waiting(self) -> list[int]:
        found = []
        for native, (ident, file) in list(self.threads.items()):
            if file >= 0 and self._waits(native, file):
                found.append(ident)
        return found

    def _waits(self, native: int, file: int) -> bool:
        """Whether a thread is in a system call on a lock of the GIL's."""
        try:
            words = os.pread(file, 48, 0).split()
            at = int(words[1], 16) if len(words) > 1 else 0
        except (OSError, ValueError):
            os.close(file)
            del self.threads[native]
            return False
        return self._holder < at < self._holder + LOCKS


class States:
    """Intervals in which each thread held the GIL or waited for it, from looks at instants."""

    def __init__(self, now: int) -> None:
        self._open: dict[int, tuple[int, int]] = {}
        self._last = now
        self.rows: list[tuple[int, int, int, int]] = []
        self.looks = self.held = self.waiting = 0

    def see(self, now: int, seen: dict[int, int]) -> None:
        """A look; a thread's state lasted until half-way from the look before."""
        if now - self._last > GAP_NS:
            self.close(self._last)
            edge = now
        else:
            edge = (self._last + now) // 2
        for thread, (state, since) in list(self._open.items()):
            if seen.get(thread) != state:
                del self._open[thread]
                self.rows.append((since, edge, thread, state))
        for thread, state in seen.items():
            self._open.setdefault(thread, (state, edge))
        self._last = now
        self.looks += 1
        self.held += 0 in seen.values()
        self.waiting += sum(seen.values())

    def close(self, edge: int) -> None:
        """End every interval here; those that go on begin again."""
        for thread, (state, since) in self._open.items():
            if edge > since:
                self.rows.append((since, edge, thread, state))
                self._open[thread] = state, edge


class Out:
    """Standard output, which never makes this program wait."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._left = bytearray()
        self.dropped = 0
        os.set_blocking(file, False)

    def add(self, kind: int, *numbers: int) -> None:
        """Add a record."""
        if kind == INTERVAL and len(self._left) > BACKLOG:
            self.dropped += 1
            return
        self._left += RECORD.pack(kind, *numbers)

    def text(self, value: object) -> None:
        """Add a text of JSON."""
        data = json.dumps(value).encode()
        self.add(TEXT, len(data), 0, 0, 0)
        self._left += data

    def flush(self, until: float = 0.0) -> None:
        """Write what is accepted; with `until` (seconds of `time.monotonic`) wait for the rest."""
        while self._left:
            try:
                del self._left[: os.write(self._file, self._left[:65536])]
            except BlockingIOError:
                wait = until - time.monotonic()
                if wait <= 0 or not select.select([], [self._file], [], wait)[1]:
                    return


class Spy:
    """py-spy, in spells of a minute."""

    def __init__(self, program: str, pid: int, rate: int) -> None:
        self._program, self._pid, self._rate = program, pid, rate
        self._child = self._error = self._file = -1
        self._said = b""
        self._zero = 0
        #: why it is not used any more
        self.refused = "" if program else "py-spy is not installed"

    def start(self) -> None:
        """Begin a spell."""
        if self.refused or self._child >= 0:
            return
        self._file = os.memfd_create("stageprof-stacks")
        self._error, theirs = os.pipe()
        self._said, self._zero = b"", 0
        path = f"/proc/{os.getpid()}/fd/{self._file}"
        words = [self._program, "record", "--pid", str(self._pid), "--gil", "--threads"]
        words += ["--nonblocking", "--format", "chrometrace", "--output", path]
        words += ["--rate", str(self._rate), "--duration", str(SPELL_S)]
        self._child = os.fork()
        if self._child == 0:
            become(words, theirs)
        os.close(theirs)

    @property
    def files(self) -> list[int]:
        """What to listen to."""
        return [self._error] if self._child >= 0 else []

    def listen(self, now: int) -> object | None:
        """It said something; what it saw, if it has ended."""
        chunk = os.read(self._error, 65536)
        self._said = (self._said + chunk)[-4096:]
        if b"Sampling process" in self._said and not self._zero:
            self._zero = now
        return None if chunk else self._ended()

    def stop(self) -> object | None:
        """End the spell; what it saw, if anything."""
        if self._child < 0:
            return None
        os.kill(self._child, 2 if self._zero else 9)
        until = time.monotonic() + LAST_S
        while time.monotonic() < until and select.select([self._error], [], [], LAST_S)[0]:
            if not os.read(self._error, 65536):
                break
        else:
            self.kill()
        return self._ended()

    def kill(self) -> None:
        """End it at once."""
        if self._child >= 0:
            os.kill(self._child, 9)

    def _ended(self) -> object | None:
        status = os.waitpid(self._child, 0)[1]
        data = os.pread(self._file, os.fstat(self._file).st_size, 0)
        os.close(self._file)
        os.close(self._error)
        self._child = -1
        try:
            return stacks(json.loads(data), self._zero)
        except (ValueError, LookupError, TypeError, AttributeError):
            last = self._said.decode(errors="replace").strip().splitlines()[-1:]
            self.refused = f"py-spy ended with status {status}: {''.join(last)}"[:300]
            return None


def become(words: list[str], error: int) -> None:
    """Turn this forked process into py-spy; it dies with its parent, whatever happens to that."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(error, 1)
        os.dup2(error, 2)
        os.execv(words[0], words)  # noqa: S606
    finally:
        os._exit(127)


def stacks(events: list[dict[str, Any]], zero: int) -> dict[str, object]:
    """A trace of py-spy as stacks: each thread's, from when it was seen to when it changed.

    The trace ends a frame when the *same thread* is seen with the GIL elsewhere, not when it gives
    the GIL away (py-spy 0.4): it tells where a thread was when it last held the GIL.
    """
    numbers: dict[tuple[tuple[str, str, int], ...], int] = {}
    open_: dict[int, list[tuple[str, str, int]]] = {}
    since: dict[int, tuple[int, int]] = {}
    rows: list[list[int]] = []

    def settle(thread: int, at: int) -> None:
        start, number = since.pop(thread, (at, 0))
        if at > start:
            rows.append([start, at, thread, number])
        frames = open_.get(thread)
        if frames:
            since[thread] = at, numbers.setdefault(tuple(frames), len(numbers))

    last: dict[int, int] = {}
    for event in events:
        thread, at = int(event["tid"]), zero + int(event["ts"]) * 1000
        if last.get(thread, at) != at:
            settle(thread, last[thread])
        last[thread] = at
        frames = open_.setdefault(thread, [])
        if event["ph"] == "E":
            del frames[-1:]
        elif not str(event["name"]).startswith("thread ("):
            where = event["args"]
            frames.append((str(event["name"]), str(where["filename"]), int(where["line"] or 0)))
    for thread, at in last.items():
        settle(thread, at)
    return {"stacks": list(numbers), "rows": rows}


class Watch:
    """Looks, and tells, until there is nobody to look at or to tell."""

    def __init__(self, target: Target, spy: Spy, rate: int) -> None:
        self._target, self._spy = target, spy
        self._out = Out(1)
        self._often = self._period = 1_000_000_000 // rate
        self._now = self._told = time.perf_counter_ns()
        self._states = States(self._now)
        self._late = 0
        self._told_refusal = ""

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
                self._threads(lines)
            if any(file in ready for file in self._spy.files):
                self._stood(self._spy.listen(self._now))
            self._look(due)

    def _wait(self, due: int) -> list[int]:
        pause = max(0.0, (due - time.perf_counter_ns()) / 1e9)
        return select.select([0, *self._spy.files], [], [], pause)[0]

    def _threads(self, lines: list[bytes]) -> None:
        for line in lines:
            native, ident, wanted = (int(word) for word in line.split())
            self._target.add(native, ident, bool(wanted))

    def _look(self, due: int) -> None:
        self._late += self._now - due > self._period
        self._states.see(self._now, self._target.look(self._now))
        if self._now - self._told >= EVERY_NS:
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
        if self._spy.refused != self._told_refusal:
            self._told_refusal = self._spy.refused
            out.text({"refused": self._told_refusal})
        if states.waiting >= WORTH * states.looks:
            self._spy.start()
        self._period = self._often * (1 if states.waiting else SELDOM)
        states.rows, states.looks, states.held, states.waiting = [], 0, 0, 0
        self._told = self._now
        out.flush()

    def _stood(self, seen: object | None) -> None:
        if seen is not None:
            self._out.text(seen)

    def end(self) -> None:
        """Tell the rest; the reader has as long as py-spy had."""
        self.tell()
        self._stood(self._spy.stop())
        self.tell()
        self._out.flush(time.monotonic() + LAST_S)


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
        seeing.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
