"""A file that is kept open while the user's program runs.

A program may close all that is open (`os.closerange`, as daemons do); the next file that it opens
has a number that was ours, and nothing of ours belongs in there.
"""

from __future__ import annotations

import os

__all__ = ["Descriptor"]


class Descriptor:
    """The number of an open file of ours, for as long as it is that file's.

    Args:
        number: of a file that was opened just before.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._file = _file(number)

    @property
    def number(self) -> int:
        """To be asked for before each use; -1 once it is closed, or the program's."""
        if self._number >= 0 and _file(self._number) != self._file:
            self._number = -1
        return self._number

    def close(self) -> None:
        """Close it; the program's is left alone.

        Raises:
            OSError: a network file system tells of a lost write only here.
        """
        number, self._number = self.number, -1
        if number >= 0:
            os.close(number)


def _file(number: int) -> tuple[int, int] | None:
    """Which file it is: device and inode; None if none is open."""
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino
