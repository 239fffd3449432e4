"""Files that a process keeps locked while it lives.

The kernel lets go of the locks of a process that is gone, however it went: whoever gets such a lock
knows that the file's owner is not there any more.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Iterator
from typing import Final

from stageprof_runtime.descriptor import Descriptor

if sys.platform != "win32":
    import fcntl

#: Whether this system has what it takes.
AVAILABLE: Final = sys.platform != "win32"
#: How a file is called until it is locked.
NEW: Final = ".new"
_FLAGS: Final = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0)


class Locked:
    """A new file of this process's; nobody finds it at its path before it is locked.

    Raises:
        OSError: there is no folder for it, or no room; or the system has no such locks there.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = Descriptor(-1)
        _mine.add(self)
        self._file = Descriptor(os.open(path + NEW, _FLAGS, 0o600))
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(path + NEW, path)
        except BaseException:
            self.let_go()
            with contextlib.suppress(OSError):
                os.unlink(path + NEW)
            raise

    @property
    def file(self) -> int:
        """Its number; -1 once it is closed."""
        return self._file.number

    def let_go(self) -> None:
        """Close it: it stays, without an owner."""
        self._file.close()

    def remove(self) -> None:
        """Nothing of it stays; a forked child leaves its parent's alone."""
        if self.file >= 0:
            with contextlib.suppress(OSError):
                os.unlink(self.path)
            self.let_go()


#: Those of this process: a forked child would keep their locks for its parent.
_mine: Final[weakref.WeakSet[Locked]] = weakref.WeakSet()


@contextlib.contextmanager
def orphan(path: str) -> Iterator[int]:
    """A file whose owner is gone, for whom it is locked now; -1 if he is there, or it is not."""
    file = -1
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        taken = os.fstat(file).st_nlink == 0
    except OSError:
        taken = True
    try:
        yield -1 if taken else file
    finally:
        if file >= 0:
            os.close(file)


def is_owned(path: str) -> bool:
    """Whether a file is there, and its owner too; others may ask at the same time."""
    if path.endswith(NEW):  # its owner is about to lock it, and must not find it locked
        return False
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def _after_fork() -> None:
    for each in list(_mine):
        each.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
