"""py-spy beside a process: where in the code its threads are when they hold the GIL."""

from __future__ import annotations

import os
import select
import time

#: As `typing` has it; importing that would take longer than all else that the watch does first.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

#: Seconds of the first run of py-spy, and of one later: what it saw is lost if it is killed.
FIRST_S: Final = 10
SPELL_S: Final = 60
#: Looks a second later on, when a run is long enough for these to tell its lines: a look takes it
#: a millisecond.
LATER_RATE: Final = 20
#: Seconds that py-spy is given to write what it saw.
LAST_S: Final = 1.5


class Spy:
    """py-spy, in spells: a short one, then some of a minute with fewer looks."""

    #: what the message is called that it is not used any more
    refusal = "refused"
    first_s, spell_s = FIRST_S, SPELL_S
    #: why it has seen nothing so far, if that is worth a word
    missed = ""
    #: the signal that ends it where it has not begun, or its parent dies
    gently = 9
    #: bytes of a trace that are read
    largest = 1 << 40

    def __init__(self, program: str, pid: int, rate: int) -> None:
        self.program, self._pid, self._rate = program, pid, rate
        self._child = self._error = self._file = -1
        self._said = b""
        self._first = True
        self._zero = self._status = self._began = 0
        #: until when one that was asked to end may take, of `time.monotonic`
        self._until = 0.0
        #: why it is not used any more, and what of that was told
        self.refused = "" if program else "py-spy is not installed"
        self.told = ""

    def start(self) -> None:
        """Begin a spell."""
        if self.refused or self._child >= 0:
            return
        try:
            self._begin()
        except OSError as error:  # no more processes are allowed here, say
            self._close()
            self.refused = f"py-spy cannot be started ({error.strerror or error})"

    def _begin(self) -> None:
        self._file = os.memfd_create("stageprof-stacks")
        self._error, theirs = os.pipe()
        self._said, self._zero = b"", 0
        words = self._words(f"/proc/{os.getpid()}/fd/{self._file}")
        self._began = time.perf_counter_ns()
        try:
            self._child = os.fork()
            if self._child == 0:
                become(words, theirs, self.gently)
        finally:
            os.close(theirs)

    def _words(self, path: str) -> list[str]:
        """The command line of the next spell."""
        rate, length = self._rate, self.first_s
        if not self._first:
            rate, length = min(rate, LATER_RATE), self.spell_s
        self._first = False
        words = [self.program, "record", "--pid", str(self._pid), *self._what()]
        words += ["--format", "chrometrace", "--output", path]
        return [*words, "--rate", str(rate), "--duration", str(length)]

    def _what(self) -> list[str]:
        """What it is to look at."""
        return ["--gil", "--threads", "--nonblocking"]

    def _seen(self, data: bytes) -> object | None:
        """What a trace says."""
        import json

        return stacks(json.loads(data), self._zero)

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

    def ask(self) -> None:
        """Ask it to end."""
        if self._child >= 0:
            os.kill(self._child, 2 if self._zero else self.gently)
            self._until = time.monotonic() + LAST_S

    def stop(self) -> object | None:
        """The spell, which was asked to end, is over; what it saw, if anything."""
        if self._child < 0:
            return None
        while time.monotonic() < self._until and select.select([self._error], [], [], LAST_S)[0]:
            if not os.read(self._error, 65536):
                break
        else:
            self.kill()
        return self._ended()

    def kill(self) -> None:
        """End it at once."""
        if self._child >= 0:
            os.kill(self._child, 9)

    def _close(self) -> None:
        for file in (self._file, self._error):
            if file >= 0:
                os.close(file)
        self._file = self._error = -1

    def _ended(self) -> object | None:
        status = self._status = os.waitpid(self._child, 0)[1]
        data = os.pread(self._file, min(os.fstat(self._file).st_size, self.largest), 0)
        self._close()
        self._child = -1
        try:
            return self._seen(data)
        except (ValueError, LookupError, TypeError, AttributeError):
            last = self._said.decode(errors="replace").strip().splitlines()[-1:]
            self.refused = f"py-spy ended with status {status}: {''.join(last)}"[:300]
            return None


def become(words: list[str], error: int, orphaned: int) -> None:
    """Turn this forked process into py-spy; it dies with its parent, whatever happens to that.

    Args:
        words: its command line.
        error: the file that it writes to.
        orphaned: the signal that it gets when its parent has died.
    """
    try:
        import ctypes
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a job in the background ignores it
        ctypes.CDLL(None).prctl(1, orphaned)  # PR_SET_PDEATHSIG
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
