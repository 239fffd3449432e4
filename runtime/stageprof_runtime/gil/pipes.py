"""The pipes between a process and its watch, for as long as they are this process's.

A program may close all files that are open, as daemons do. What it opens next has the numbers that
the pipes had, and nothing of ours is written there, read from there or closed there.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import IO, Final

from stageprof_runtime.descriptor import Descriptor
from stageprof_runtime.gil.messages import END

#: Bytes of the watch's last words that are told.
WORDS: Final = 300


class Pipes:
    """This side's ends of a process's pipes; `subprocess` would close them by their numbers.

    Args:
        child: begun just before, with a pipe for each of the three.
    """

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._into, self._out, self._err = map(_taken, (child.stdin, child.stdout, child.stderr))

    @property
    def out(self) -> int:
        """The number of what it says; -1 once that is closed."""
        return self._out.number

    def write(self, data: bytes) -> None:
        """Tell it something.

        Raises:
            OSError: it has ended, or the pipe is closed.
        """
        os.write(self._into.number, data)

    def read(self) -> bytes:
        """What it has said; b"" once it says no more."""
        number = self._out.number
        return os.read(number, 1 << 16) if number >= 0 else b""

    def last_words(self) -> str:
        """What it complained of, once it has ended."""
        number = self._err.number
        said = os.read(number, WORDS) if number >= 0 else b""
        return said.decode(errors="replace").strip()

    def hang_up(self) -> None:
        """Tell it to end, and nothing more."""
        with contextlib.suppress(OSError):  # it has ended
            self.write(END + b"\n")
        self._into.close()

    def close(self) -> None:
        """Close all of them."""
        for end in (self._into, self._out, self._err):
            end.close()


def _taken(pipe: IO[bytes] | None) -> Descriptor:
    if pipe is None:
        raise ValueError("the watch was begun without a pipe")
    with pipe:
        return Descriptor(os.dup(pipe.fileno()))
