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
from typing import Final, Protocol

if sys.platform != "win32":
    import fcntl

#: Whether this system has what it takes.
AVAILABLE: Final = sys.platform != "win32"
#: How a file that is to be locked is called until it is.
NEW: Final = ".new"


class Owner(Protocol):
    """Somebody who holds such a file."""

    def let_go(self) -> None:
        """Close it, and nothing else."""


#: Those of this process: a forked child would keep their locks for its parent.
_owners: Final[weakref.WeakSet[Owner]] = weakref.WeakSet()


def make(path: str, owner: Owner) -> int:
    """A new file, locked; nobody finds it at its path before it is. The owner closes it.

    Raises:
        OSError: there is no folder for it, or no room, or it is there.
    """
    file = os.open(path + NEW, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(path + NEW, path)
    except BaseException:
        os.close(file)
        raise
    _owners.add(owner)
    return file


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
    """Whether a file is there, and its owner too."""
    if path.endswith(NEW):  # he is about to lock it, and must not find it locked
        return True
    with orphan(path) as file:
        return file < 0 and os.path.exists(path)


def _after_fork() -> None:
    for owner in list(_owners):
        owner.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
