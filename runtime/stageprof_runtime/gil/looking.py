"""Looking at another process: which of its threads has the GIL, and which wait for it."""

from __future__ import annotations

import os
import struct

#: As `typing` has it; importing that would take longer than all else that the watch does first.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

#: Between two looks so far apart (ns) nothing is known of the time between them.
GAP_NS: Final = 500_000_000
#: Bytes of the GIL's state behind the holder in which the addresses of its locks are.
LOCKS: Final = 256

#: A thread that neither held nor waited in so many looks is looked at in one of `TURNS` only.
LATELY: Final = 100
TURNS: Final = 8

_HOLDER: Final = struct.Struct("<QI")
_IDENTS: Final = struct.Struct("<QQ")


class Target:
    """The process looked at."""

    def __init__(self, pid: int, holder: int, ident: int) -> None:
        self.pid, self._holder, self._ident = pid, holder, ident
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        #: thread id -> identifier, file that says what it waits in (-1: not looked at)
        self.threads: dict[int, tuple[int, int]] = {}
        #: thread id -> number of the look that saw it wait or hold last
        self._active: dict[int, int] = {}
        self._looks = 0
        #: whether the last look saw threads that wait
        self._wanted = False
        self.look(os.getpid())

    def look(self, now: int) -> dict[int, int]:
        """Identifier -> 0 of the thread that has the GIL, 1 of those that wait."""
        state, locked = _HOLDER.unpack(os.pread(self._memory, _HOLDER.size, self._holder))
        taken = locked & 0xFF and state
        # Nobody waits for a free GIL but while it changes hands.
        waiting = self._waiting() if taken or self._wanted else []
        self._wanted = bool(waiting)
        seen = dict.fromkeys(waiting, 1)
        if taken:
            seen[self._holding(state)] = 0
        return seen

    def _holding(self, state: int) -> int:
        try:
            ident, native = _IDENTS.unpack(os.pread(self._memory, 16, state + self._ident))
        except (OSError, struct.error):  # the thread has just ended
            return 0
        if native not in self.threads:
            self.add(native, ident)
        self._active[native] = self._looks
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
        self._looks = now = self._looks + 1
        for native, (ident, file) in list(self.threads.items()):
            idle = now - self._active.get(native, now - LATELY) >= LATELY
            if file < 0 or (idle and (now + native) % TURNS):
                continue
            if self._waits(native, file):
                self._active[native] = now
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
            self._active.pop(native, None)
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
            self._open.clear()
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
