"""The client as who looks last for what workers of its host could not send; see `tail`.

While it is there, a worker that ends without being asked for its last rows may leave them.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

from stageprof_runtime import locked
from stageprof_runtime.tail import folder_of, inherited, sweep

#: What its file is called, behind the number of its process. Nobody takes it for a worker's.
_HEIR: Final = ".heir"


class Heir:
    """Of one session, on the client's host: from `wait` to `take`."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._file = -1
        self._path = ""

    def wait(self) -> None:
        """Have workers of this host know that somebody is there; does so once.

        Raises:
            OSError: there is no folder for it, or no room.
        """
        if self._file >= 0 or not locked.AVAILABLE:
            return
        folder = folder_of(self._session, make=True)
        sweep(os.path.dirname(folder))
        self._path = os.path.join(folder, f"{os.getpid()}{_HEIR}")
        self._file = locked.make(self._path, self)

    def take(self) -> list[bytes]:
        """The batches that were left; nobody waits for more, and the session's folder goes, too."""
        if self._file >= 0:  # first: what is left from now on would stay
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self.let_go()
        batches = inherited(self._session)
        with contextlib.suppress(OSError):  # there is none, or a worker is still there
            os.rmdir(folder_of(self._session))
        return batches

    def let_go(self) -> None:
        """Close the file, and nothing else."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)
