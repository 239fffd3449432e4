"""The folder that a flight recorder writes to: its own for as long as it lives.

In a folder that the user names, `current` holds the segments of this scheduler's life and
`previous` those of the one before, which may have crashed. The lock goes with the process.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Final

from stageprof_runtime.flight.segments import SUFFIX

CURRENT: Final = "current"
PREVIOUS: Final = "previous"


def take(folder: str) -> tuple[str, Callable[[], None]]:
    """Where to write, and what lets go of it again.

    Raises:
        OSError: the folder cannot be made, another recorder has it, or it is somebody else's.
    """
    import fcntl  # not on Windows, where a folder of the user's is refused

    os.makedirs(folder, mode=0o700, exist_ok=True)
    for name in (CURRENT, PREVIOUS):
        _check(os.path.join(folder, name))
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    lock = os.open(os.path.join(folder, "lock"), flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _emptied(folder), lambda: os.close(lock)
    except BlockingIOError:
        os.close(lock)
        raise OSError(f"another scheduler records to {folder}") from None
    except BaseException:
        os.close(lock)
        raise


def _check(path: str) -> None:
    """Whether it may be removed: a recorder's, or not there; others' are called so too."""
    try:
        entries = list(os.scandir(path))
    except FileNotFoundError:
        entries = []
    ours = all(e.name.endswith(SUFFIX) and e.is_file(follow_symlinks=False) for e in entries)
    if os.path.islink(path) or not ours:
        raise OSError(f"{path} is not a folder of a flight recorder, which would remove it")


def _emptied(folder: str) -> str:
    current, previous = (os.path.join(folder, name) for name in (CURRENT, PREVIOUS))
    if os.path.isdir(current) and os.listdir(current):
        shutil.rmtree(previous, ignore_errors=True)
        os.rename(current, previous)
    os.makedirs(current, mode=0o700, exist_ok=True)
    return current


def made(folder: str) -> str:
    """A folder for one life, in one that Dask removes when the scheduler ends."""
    path = os.path.join(folder, "stageprof-flight")
    os.makedirs(path, mode=0o700, exist_ok=False)
    return path
