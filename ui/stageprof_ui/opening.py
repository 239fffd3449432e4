"""Recordings that a thread opens, one after another, and those that are open."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from stageprof_ui.columns.library import Entry
from stageprof_ui.store import Store

#: Recordings that are kept open because a page may be asked for again, and that wait their turn.
OPEN: Final = 3
#: Seconds that a page is waited for before it says that the recording is being opened.
SOON_S: Final = 0.5
#: Seconds in which whoever waits has asked again: later nobody is told why it was refused.
ASKED_S: Final = 10.0

#: Opens a recording and makes what its pages need.
Make = Callable[[], Store]


class Opening:
    """What is open, what is being opened, and what waits for that.

    All of it goes by the state of the file: what was made of an earlier one nobody is shown.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[Entry, Store] = OrderedDict()
        #: why some could not be, and when that was found
        self._refused: dict[Entry, tuple[float, BaseException]] = {}
        self._waiting: OrderedDict[Entry, Make] = OrderedDict()
        #: the one that the thread works on; there is a thread as long as there is work
        self._making: Entry | None = None
        self._busy = False
        #: held for a moment only, and told of each that is done
        self._changed = threading.Condition()

    def made(self, entry: Entry, make: Make) -> Store | None:
        """A recording, once the thread has made it; None until then.

        Args:
            entry: the file.
            make: what the thread does for it, if it was not done.

        Raises:
            BaseException: what `make` raised; who asks once more has it tried again.
        """
        with self._changed:
            if not self._known(entry):
                asked = entry == self._making or entry in self._waiting
                self._ask(entry, make)
                if not asked:  # who asks again does not wait: the loop is that of all who look
                    self._changed.wait_for(lambda: self._known(entry), SOON_S)
            if entry in self._refused:
                raise self._refused.pop(entry)[1]
            if entry in self._open:
                self._open.move_to_end(entry)
            return self._open.get(entry)

    def _known(self, entry: Entry) -> bool:
        before = time.monotonic() - ASKED_S
        self._refused = {e: found for e, found in self._refused.items() if found[0] > before}
        return entry in self._open or entry in self._refused

    def _ask(self, entry: Entry, make: Make) -> None:
        """What was asked for last has its turn first: for the others perhaps nobody waits."""
        if entry == self._making:
            return
        self._waiting[entry] = make
        self._waiting.move_to_end(entry)
        while len(self._waiting) > OPEN:  # who does wait asks again
            self._waiting.popitem(last=False)
        if not self._busy:
            threading.Thread(target=self._work, name="stageprof-open", daemon=True).start()
            self._busy = True  # not before: there may be no thread left to be had

    # -- in a thread of its own -------------------------------------------------------------

    def _work(self) -> None:
        while (turn := self._turn()) is not None:
            entry, make = turn
            try:
                self._done(entry, make())
            except BaseException as error:  # whoever asked for it is told
                self._refuse(entry, error)
            del turn, make

    def _turn(self) -> tuple[Entry, Make] | None:
        with self._changed:
            self._busy = bool(self._waiting)
            if not self._busy:
                return None
            turn = self._waiting.popitem()
            self._making = turn[0]
            return turn

    def _done(self, entry: Entry, store: Store) -> None:
        with self._changed:
            self._making = None
            self._open[entry] = store
            while len(self._open) > OPEN:
                self._open.popitem(last=False)
            self._changed.notify_all()

    def _refuse(self, entry: Entry, error: BaseException) -> None:
        # Its frames hold the recording.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        with self._changed:
            self._making = None
            self._refused[entry] = time.monotonic(), error
            self._changed.notify_all()
