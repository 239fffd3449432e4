"""What a worker has not sent yet, kept where a kill does not reach: others on its host send it.

A worker sends what it has when there is enough of it, or after half a second (five from 50 workers
on), for each message costs the scheduler. Meanwhile, ten times a second, it writes what is new to a
file of its own that it keeps locked, in memory (`/dev/shm`) where the system has that. The kernel
lets go of the lock of a process that is gone, however it went: whichever worker of the session on
that host looks next (the one that a nanny starts anew, for one) takes the file, sends what is in it
and removes it; the client looks last, as the session ends. Where neither another worker nor the
client is on that host the tail is lost, and the recording says so.

The file is a row of msgpack's objects: how the batch that would come next is to be made, with the
batches before that may not have left when their worker was killed; then, for each look at what
is new, `[time, rows, sums so far]`; and the batches of others that it sends, `[batch, ...]`. A
batch that comes twice counts once: it has a number. Looks at stacks are not in it. See
`inheritance` for who reads it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
import time
from collections.abc import Sequence
from typing import Any, Final

import msgpack

from stageprof_runtime import locked
from stageprof_runtime.batch import Row, safe_key
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import Place
from stageprof_runtime.locked import Locked

#: Where the system keeps files in memory, and what takes none of a disk's time.
MEMORY: Final = "/dev/shm"  # noqa: S108 (a folder of our own in it, for us alone)
#: Bytes of a file; what is beyond is lost with a worker that is killed.
MOST: Final = 4 << 20
#: Bytes of a file that are read; what would not be is not written.
ALL: Final = 2 * MOST
#: A file of this age, in seconds, in a folder where no owner is, belongs to no session any more.
STALE_S: Final = 3_600.0
#: What the file of a worker is called.
KEPT: Final = ".tail"
#: What the file of a client is called that waits for what is left; see `heir`.
HEIR: Final = ".heir"


class Tail:
    """The file of one worker, from its first rows to `close`."""

    def __init__(self, session: str, place: Place) -> None:
        self._session = session
        self._place = place
        self._there: Locked | None = None
        self._size = 0
        self._closed = False
        #: how the next batch is to be made, and the batches before
        self._head: list[Any] = [0, {}, {}, 0, [0, 0, 0], []]
        #: these as they were sent: the latest, and those before it that may not have left
        self._sent: list[list[bytes]] = []

    def keep(self, rows: Sequence[Row], sums: Sequence[Row]) -> None:
        """Add rows that are not sent yet, or that there are none; sums replace those before.

        Raises:
            OSError: there is no folder for it, or no room.
            TypeError, OverflowError: a row that cannot be packed.
        """
        if self._closed or self._size > MOST:
            return
        if self._there is None and not rows:
            return
        self._begun()
        self._write([now_ns(), list(rows), list(sums)])

    def sent(
        self,
        batches: Sequence[bytes],
        seq: int,
        drops: dict[str, int],
        cost: dict[str, list[int]],
        now: int,
        counts: Sequence[int],
        *,
        left: bool = True,
    ) -> None:
        """What was kept is on its way, as these; begin anew with what the next batch will say.

        With `left` those that were sent before are known to have left the process, but for the last
        of them: it may be half-way.
        """
        if left:
            del self._sent[:-1]
        self._sent.append(list(batches))
        while self._sent and sum(len(b) for some in self._sent for b in some) >= MOST:
            del self._sent[0]
        few = [batch for some in self._sent for batch in some]
        self._head = [seq, drops, cost, now, list(counts), few]
        file = self._file
        if file >= 0 and not self._closed:
            os.ftruncate(file, 0)
            self._size = 0
            self._begun()

    def carry(self, batches: Sequence[bytes]) -> None:
        """Batches of others are on their way through this worker.

        Raises:
            OSError: as for `keep`.
        """
        self._sent.append(list(batches))
        if self._closed or self._size + sum(map(len, batches)) > ALL:
            return
        self._begun()
        self._write(self._sent[-1])

    def leave(self, batches: Sequence[bytes]) -> None:
        """The worker ends, and nobody takes these from it: the others of its host will.

        Where there are none, nothing is left: a cluster that ends would leave its last worker's.

        Raises:
            OSError: as for `keep`.
        """
        if self._closed or not self._has_neighbours():
            self.close()
            return
        self._begun()
        *state, _ = self._head
        known = [b for some in self._sent for b in some]
        self.sent([b for b in batches if b not in known], *state, left=False)
        self.let_go()
        if not self._has_neighbours():  # the last of them had looked just before
            self._take_back()

    def _take_back(self) -> None:
        if self._there is not None:
            _unlink_orphan(self._there.path)
        depart(self._session)

    def _has_neighbours(self) -> bool:
        try:
            files = {entry.path for entry in os.scandir(folder_of(self._session))}
        except OSError:
            return False
        mine = set() if self._there is None else {self._there.path}
        return any(map(locked.is_owned, files - mine))

    def close(self) -> None:
        """All is sent: remove it."""
        self._closed = True
        if self._there is not None:
            self._there.remove()
        depart(self._session)

    def let_go(self) -> None:
        """Close the file, and nothing else."""
        self._closed = True
        if self._there is not None:
            self._there.let_go()

    @property
    def is_quick(self) -> bool:
        """Whether the file is there, and in memory: adding to it takes none of a disk's time."""
        there = self._there
        return there is not None and not self._closed and there.path.startswith(f"{MEMORY}{os.sep}")

    @property
    def _file(self) -> int:
        return -1 if self._there is None else self._there.file

    def _begun(self) -> None:
        """Have the file begin as it must: there may have been no room for that before."""
        if self._there is None:
            try:
                self._make()
            except FileNotFoundError:  # the last of the others took the folder away just then
                self._make()
        if not self._size:
            self._write_head()

    def _make(self) -> None:
        folder = folder_of(self._session, make=True)
        sweep(os.path.dirname(folder))
        path = os.path.join(folder, f"{os.getpid()}-{self._place.life}{KEPT}")
        with contextlib.suppress(FileNotFoundError):  # of one that the program has closed
            os.unlink(path)
        self._there, self._size = Locked(path), 0

    def _write_head(self) -> None:
        try:
            self._write([list(self._place), *self._head])
        except OSError:  # what comes next is worth more than what has most likely arrived
            self._write([list(self._place), *self._head[:-1], []])

    def _write(self, what: list[Any]) -> None:
        packed = msgpack.packb(what, default=safe_key, unicode_errors="surrogatepass")
        if self._size + len(packed) > ALL:
            return
        file = self._file  # asked for once: each time another thread may take the GIL
        if file < 0:  # the program has closed it: the next time there is another
            self._there = None
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        if os.pwrite(file, packed, self._size) < len(packed):
            os.ftruncate(file, self._size)  # or what comes later could not be read
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._there and self._there.path)
        self._size += len(packed)


def depart(session: str) -> None:
    """Remove what a killed client has left of itself, and the folder if nobody is there."""
    with contextlib.suppress(OSError):  # there is none, or others are there
        folder = folder_of(session)
        for entry in list(os.scandir(folder)):
            if entry.name.endswith(HEIR):
                _unlink_orphan(entry.path)
        os.rmdir(folder)


def _unlink_orphan(path: str, folder: int | None = None) -> None:
    """Remove a file whose owner is gone; of that folder if it is open, whatever the path is now."""
    with locked.orphan(path) as file:
        if file >= 0:
            os.unlink(path if folder is None else os.path.basename(path), dir_fd=folder)


def folder_of(session: str, *, make: bool = False) -> str:
    """The folder of a session's tails on this host.

    Raises:
        OSError: there is none, or it is not ours alone.
    """
    base = MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else tempfile.gettempdir()
    path = os.path.join(base, f"{_prefix()}{session}")
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    _check(path, os.lstat(path))
    return path


def _check(path: str, there: os.stat_result) -> None:
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid() or there.st_mode & 0o077:
        raise PermissionError(f"{path} is not a folder of this user alone")


def _prefix() -> str:
    return f"stageprof-tails-{getattr(os, 'getuid', int)()}-"  # Windows has neither tails nor those


def sweep(base: str) -> None:
    """Remove what sessions have left whose workers were all killed."""
    for entry in list(os.scandir(base)):
        if entry.name.startswith(_prefix()):
            with contextlib.suppress(OSError):
                _clear(entry.path)


def _clear(folder: str) -> None:
    """The same of one; what bears its name may be a link that somebody else has put there."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        there = os.fstat(here)  # before: to remove what is in it makes it new
        _check(folder, there)
        _clear_files(folder, here)
    finally:
        os.close(here)
    if _is_stale(there):
        os.rmdir(folder)


def _clear_files(folder: str, here: int) -> None:
    names = os.listdir(here)
    if any(locked.is_owned(os.path.join(folder, name)) for name in names):
        raise BlockingIOError(f"{folder} has an owner, who will take what others have left")
    for name in names:
        if _is_stale(os.stat(name, dir_fd=here, follow_symlinks=False)):
            _unlink_orphan(os.path.join(folder, name), here)


def _is_stale(there: os.stat_result) -> bool:
    return time.time() - there.st_mtime > STALE_S
