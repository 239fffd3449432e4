"""A sleep that any thread may end at once, and that no lock of which a fork may have left taken.

To end a `threading.Event`'s or a `Condition`'s wait its lock has to be had first. Hooks of ours end
sleeps of our threads in the user's threads, which must never wait for one of ours.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from threading import Lock


class Nap:
    """One thread sleeps in `until`; any other may `end` that."""

    def __init__(self) -> None:
        self._over = Lock()
        self._over.acquire()
        #: whether somebody sleeps: `end` is needed then only
        self.on = False

    def until(self, there: Callable[[], bool]) -> None:
        """Sleep until `end` is called; not at all if there is something to do already.

        It may end without cause, if `end` was called in the moment in which the sleep began.
        """
        self.on = True
        if not there():
            self._over.acquire()
        self.on = False

    def end(self) -> None:
        """Wake the sleeper; returns at once."""
        self.on = False
        with contextlib.suppress(RuntimeError):  # two ended it
            self._over.release()
