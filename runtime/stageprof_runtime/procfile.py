"""A file of the kernel's that is read again and again, through a descriptor that stays open.

Each system call on a file lets go of the GIL, and beside a thread in pure Python it takes up to
five milliseconds to get it back. psutil opens, reads and closes each of several files anew.
"""

from __future__ import annotations

import os

#: The kernel gives whole lines up to this many bytes at a time: of a part of less than half of it
#: no line was left out. And no more parts than this.
_PAGE, _PARTS = 4096, 64


class ProcFile:
    """Reads a file of /proc from its beginning, however often."""

    def __init__(self, path: str) -> None:
        self._file = _opened(path)
        self._same = _which(self._file)

    def read(self) -> bytes:
        """What it holds now; nothing where there is no such file, or it was closed by somebody."""
        if self._file < 0 or _which(self._file) != self._same:
            return b""
        parts: list[bytes] = []
        at = 0
        while len(parts) < _PARTS:
            part = os.pread(self._file, _PAGE, at)
            parts.append(part)
            at += len(part)
            if len(part) < _PAGE // 2:
                break
        return b"".join(parts)

    def close(self) -> None:
        """Read no more."""
        file, self._file = self._file, -1
        if file >= 0 and _which(file) == self._same:
            os.close(file)


def _which(file: int) -> tuple[int, int] | None:
    """What tells an open file from others: a task may close all files, and open its own."""
    try:
        found = os.fstat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return -1
