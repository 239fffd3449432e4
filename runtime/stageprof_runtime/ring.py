"""A bounded ring of rows: what probes append to and a shipper empties."""

from __future__ import annotations

import threading
from collections import deque

from stageprof_runtime.batch import Row
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import SPAN, SUM

#: Rows kept while the shipper is away; at 20,000 rows/s more than three seconds of them.
CAPACITY = 65_536
#: A span shorter than this is added to a running sum instead of being kept by itself.
SHORT_NS = 200_000


class Ring:
    """Holds at most `capacity` rows; when full the oldest goes and is counted.

    Appending takes no lock: a deque's append and popleft are atomic.
    """

    def __init__(self, capacity: int = CAPACITY, *, short_ns: int = SHORT_NS) -> None:
        self.capacity = capacity
        self.short_ns = short_ns
        self._rows: deque[Row] = deque()
        #: Rows lost so far because the ring was full.
        self.dropped = 0
        self._dropping = threading.Lock()
        self._sums: dict[int, list[int]] = {}
        self.append = self._rows.append

    def emit(self, row: Row) -> None:
        """Add one row."""
        if len(self._rows) >= self.capacity:
            self._drop()
        self.append(row)

    def _drop(self) -> None:
        try:
            self._rows.popleft()
        except IndexError:  # it was emptied meanwhile
            return
        with self._dropping:  # only a full ring takes the lock, so that the count is exact
            self.dropped += 1

    def span(
        self, step: int, start: int, stop: int, thread: int, label: object = "", nbytes: int = 0
    ) -> None:
        """Add a span, or its length to the step's sum if it is short."""
        if stop - start >= self.short_ns:
            self.emit((SPAN, step, start, stop, thread, label, nbytes))
            return
        total = self._sums.get(step)
        if total is None:
            total = self._sums.setdefault(step, [0, 0, 0])
        total[0] += 1
        total[1] += stop - start
        total[2] += nbytes

    def take(self, *, sums_too: bool = True) -> list[Row]:
        """Remove and return what is here, with the sums of short spans or without."""
        rows: list[Row] = []
        try:
            rows.extend(self._rows.popleft() for _ in range(len(self._rows)))
        except IndexError:  # a full ring lost its oldest meanwhile
            pass
        if not sums_too:
            return rows
        sums, self._sums = self._sums, {}
        t = now_ns()
        rows.extend((SUM, t, step, *total) for step, total in sums.items())
        return rows

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self._sums.clear()
