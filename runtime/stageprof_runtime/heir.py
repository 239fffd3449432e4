"""The client as who looks last for what workers of its host could not send; see `tail`.

While it is there, a worker that ends without being asked for its last rows may leave them.
"""

from __future__ import annotations

import contextlib
import os

from stageprof_runtime.clock import now_ns
from stageprof_runtime.inheritance import inherited
from stageprof_runtime.locked import AVAILABLE, Locked
from stageprof_runtime.tail import HEIR, depart, folder_of, sweep


class Heir:
    """Of one session, on the client's host: from `wait` to `take`.

    Each on a thread of its own: the session does not wait for `wait` for ever before it ends.
    """

    def __init__(self, session: str) -> None:
        self._session = session
        self._there: Locked | None = None
        #: whether it has been tried; whether nobody waits any more
        self._done = self._over = False

    def wait(self) -> None:
        """Have workers of this host know that somebody is there; tries that once.

        Raises:
            OSError: there is no folder for it, or no room.
        """
        if self._done or not AVAILABLE:
            return
        self._done = True
        try:
            self._wait()
        except OSError:
            if not self._over:  # else the folder may have gone meanwhile
                raise
        finally:
            if self._over:  # since then: `take` may not have seen what was being made
                self.end()

    def _wait(self) -> None:
        folder = folder_of(self._session, make=True)
        self._there = Locked(os.path.join(folder, f"{os.getpid()}-{now_ns()}{HEIR}"))
        with contextlib.suppress(OSError):
            sweep(os.path.dirname(folder))

    def left(self) -> list[bytes]:
        """What has been left so far: a run may go on for long after the last worker has gone."""
        return inherited(self._session) if self._there is not None and not self._over else []

    def take(self) -> list[bytes]:
        """The batches that were left; nobody waits for more, and the session's folder goes, too."""
        self._leave()  # first: what is left from now on is taken back
        # Twice: a worker may just have been asking whether the owner of one is there.
        batches = inherited(self._session) + inherited(self._session)
        depart(self._session)
        return batches

    def end(self) -> None:
        """Nobody waits any more: nothing of it stays, whatever became of `take`."""
        self._leave()
        depart(self._session)

    def _leave(self) -> None:
        self._done = self._over = True
        if self._there is not None:
            self._there.remove()
