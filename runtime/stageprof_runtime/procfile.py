"""A file of the kernel's that is read again and again, through a descriptor that stays open.

Each system call on a file lets go of the GIL, and beside a thread in pure Python it takes up to
five milliseconds to get it back. psutil opens, reads and closes each of several files anew.
"""

from __future__ import annotations

import os

from stageprof_runtime.descriptor import Descriptor

#: The kernel gives whole lines up to this many bytes at a time: of a part of less than half of it
#: no line was left out. And no more parts than this.
_PAGE, _PARTS = 4096, 64


class ProcFile:
    """Reads a file of /proc from its beginning, however often."""

    def __init__(self, path: str) -> None:
        self._file = Descriptor(_opened(path))

    def read(self) -> bytes:
        """What it holds now; nothing where there is no such file, or it was closed by somebody."""
        file = self._file.number
        if file < 0:
            return b""
        parts: list[bytes] = []
        at = 0
        while len(parts) < _PARTS:
            part = os.pread(file, _PAGE, at)
            parts.append(part)
            at += len(part)
            if len(part) < _PAGE // 2:
                break
        return b"".join(parts)

    def close(self) -> None:
        """Read no more."""
        self._file.close()


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return -1
