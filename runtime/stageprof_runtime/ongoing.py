"""Runs that last, told while they go on.

The row of a run is emitted when its function ends. Of one that is interrupted, or whose worker is
killed, nobody would know that it had begun. While it lasts it is told as if it ended now.
"""

from __future__ import annotations

from typing import Any, Final

from stageprof_runtime.clock import now_ns
from stageprof_runtime.compat import run_id
from stageprof_runtime.event import ONGOING
from stageprof_runtime.probes.execution import begun, pending
from stageprof_runtime.probes.stacks import used
from stageprof_runtime.ring import Ring

#: Runs that last so long are told of, ns.
LONG_NS: Final = 1_000_000_000
#: Told again when this part of their time has passed since: in an hour 116 rows.
PART: Final = 0.05


class Ongoing:
    """Tells one session of the runs of one worker that go on; asked by its shipper."""

    def __init__(self, ring: Ring, worker: Any) -> None:
        self._ring = ring
        self._worker = worker
        #: when each was told of, by thread and start
        self._told: dict[tuple[int, int], int] = {}

    def tell(self, *, least_ns: int = LONG_NS) -> None:
        """Emit a row for each that has lasted for so long, and was not told of lately."""
        now, before, self._told = now_ns(), self._told, {}
        for thread, run in begun.copy().items():
            start = run[1]
            told = self._told[thread, start] = before.get((thread, start), start)
            if now - told >= max(least_ns, PART * (now - start)):
                self._told[thread, start] = now
                self._say(thread, run, now)

    def end(self) -> None:
        """Tell of all, for nobody will be asked again."""
        self._told = {}
        self.tell(least_ns=0)

    def _say(self, thread: int, run: tuple[Any, int, int], now: int) -> None:
        key, start, cpu = run
        number, times = run_id(self._worker, key), pending.get(key, (start, start))
        took, address = max(used(thread) - cpu, 0), self._worker.contact_address
        if number >= 0 and begun.get(thread) is run:  # else the row of its end is there already
            self._ring.emit((ONGOING, number, *times, start, now, thread, took, address))
