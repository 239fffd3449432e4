"""The clocks of a run that goes on, as far as they can be compared yet."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Ints, present
from stageprof_collectors.storage.alignment import Clock, align
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.storage.store import Store

#: Looks after which clocks are compared anew.
_LOOKS: Final = 10


class Clocks:
    """Reads stamps of all places on the client's clock; `look` follows what is known of them.

    A place on another host may tell of tasks before its first round trip: until then its stamps
    say nothing.
    """

    def __init__(self) -> None:
        #: when the run began, and ns since then until which something is known
        self.origin = self.end = 0
        self._clocks: list[Clock] = []
        self._timed = np.zeros(0, np.bool_)
        self._looks = self._pings = 0
        self._asked: set[int] = set()

    def look(self, store: Store) -> bool:
        """Whether stamps can be read: there is a client, and schedulers can be compared with it."""
        roles = [place.role for place in store.places]
        if "client" not in roles:
            return False
        reference = roles.index("client")
        # One that is heard of for the first time is known from now on.
        if self._new(store) or len(self._clocks) != len(roles) or self._looks % _LOOKS == 0:
            self._compare(store, reference)
        if not all(self._timed[i] for i, role in enumerate(roles) if role == "scheduler"):
            return False
        if not self._looks:
            self.origin = min(self._ends(store, "first_t"))
        self._looks += 1
        self.end = max(self._ends(store, "last_t")) - self.origin
        return True

    def timed(self, places: Ints) -> NDArray[np.bool_]:
        """Which of some places' stamps can be read."""
        found: NDArray[np.bool_] = self._timed[places]
        return found

    def read(self, times: Ints, places: Ints) -> Ints:
        """Stamps, each of its place, on the client's clock."""
        found, rows = times.copy(), Rows(places)
        for place in rows.numbers:
            mine = rows.of(place)
            found[mine] = self._clocks[place].read(times[mine])
        return found

    def _new(self, store: Store) -> bool:
        """Whether a place told of its first round trip."""
        asked = present(store.since("ping", self._pings)["place"])
        self._pings, before = store.rows("ping"), len(self._asked)
        self._asked.update(asked)
        return len(self._asked) > before

    def _compare(self, store: Store, reference: int) -> None:
        self._clocks = align(store, reference)
        host = store.places[reference].host
        both = zip(self._clocks, store.places, strict=True)
        self._timed = np.array([clock.known or place.host == host for clock, place in both])

    def _ends(self, store: Store, which: str) -> list[int]:
        """The first or last instants of the places whose stamps can be read."""
        places = np.flatnonzero(self._timed)
        ends = [getattr(store.origins[place], which) for place in places.tolist()]
        found: list[int] = self.read(np.array(ends, np.int64), places).tolist()
        return found
