"""What a recording knows of one place apart from its events: how it is, and what is missing."""

from __future__ import annotations

from bisect import bisect_right
from copy import copy
from operator import itemgetter
from typing import Final, TypeVar

import msgspec

from stageprof_collectors.storage.shipment import Shipment
from stageprof_runtime.event import Place

_T = TypeVar("_T")

#: Gaps of a place that late batches may still fill: of more the oldest are for ever. A link that
#: loses much has some hundreds; a million that somebody wrote would take minutes.
OPEN: Final = 5_000


class Origin:
    """The state of one place by its latest batch, and which of its batches never came."""

    def __init__(self, place: Place) -> None:
        self.place = place
        #: sequence number of the latest batch; -1: none yet
        self.last_seq = -1
        #: batches received, each counted once; those that came again and were ignored
        self.batches = self.duplicates = 0
        #: ranges (first, last) of sequence numbers that were skipped and have not come since
        self.gaps: list[tuple[int, int]] = []
        #: how many were in gaps that nobody waits for any more
        self._gone = 0
        #: clock of the place when it packed its first and its last batch, ns
        self.first_t = self.last_t = 0
        #: code of the step that it is in, and [tasks, assigned, finished] so far
        self.now = 0
        self.counts = (0, 0, 0)
        self._drops = self._cost = b"\x80"

    @property
    def lost(self) -> int:
        """How many batches are missing."""
        return self._gone + sum(last - first + 1 for first, last in self.gaps)

    @property
    def drops(self) -> dict[str, int]:
        """Rows that the place could not keep so far, by reason."""
        return _decoded(self._drops, dict[str, int])

    @property
    def cost(self) -> dict[str, tuple[int, int]]:
        """Calls and ns of each hook so far."""
        return _decoded(self._cost, dict[str, tuple[int, int]])

    def copy(self) -> Origin:
        """The same as it is now."""
        other = copy(self)
        other.gaps = self.gaps.copy()
        return other

    def take(self, shipment: Shipment) -> bool:
        """Note a batch; whether it is new."""
        if shipment.seq > self.last_seq:
            self._advance(shipment)
        elif not self._fill(shipment.seq - shipment.merged + 1, shipment.seq):
            self.duplicates += 1
            return False
        self.batches += shipment.merged
        return True

    def _advance(self, s: Shipment) -> None:
        first = s.seq - s.merged + 1
        if first > self.last_seq + 1:
            self.gaps.append((self.last_seq + 1, first - 1))
            self._give_up()
        self.first_t = s.first if self.last_seq < 0 else self.first_t
        self.last_seq, self.last_t, self.now, self.counts = s.seq, s.t, s.now, s.counts
        self._drops, self._cost = s.drops, s.cost

    def _fill(self, low: int, high: int) -> bool:
        """Take numbers that came late out of the gaps; False if they are in none."""
        i = bisect_right(self.gaps, low, key=itemgetter(0)) - 1  # they are in order
        if i < 0 or high > self.gaps[i][1]:
            return False
        first, last = self.gaps[i]
        parts = [(first, low - 1), (high + 1, last)]
        self.gaps[i : i + 1] = [(a, b) for a, b in parts if a <= b]
        self._give_up()
        return True

    def _give_up(self) -> None:
        """Wait for the oldest gap no more if there are too many."""
        if len(self.gaps) > OPEN:
            first, last = self.gaps.pop(0)
            self._gone += last - first + 1


def _decoded(packed: bytes, kind: type[dict[str, _T]]) -> dict[str, _T]:
    try:
        return msgspec.msgpack.decode(packed, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
