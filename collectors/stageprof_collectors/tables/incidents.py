"""What befell the workers for want of memory: spilling, pauses, and their nannies' ending them.

Times are ns on the region's clock; a worker is named by its address, or by the index of its place
if it was observed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from stageprof_collectors.account.lane import Lanes
from stageprof_collectors.account.timeline import Timeline
from stageprof_collectors.text import number
from stageprof_runtime.ending import RAISED
from stageprof_runtime.event import LOCK
from stageprof_runtime.stage import STEP

#: Steps of writing results to disk and of reading them back.
SPILL = frozenset({STEP["spill.write"], STEP["spill.read"]})

#: A worker that ends with the terminal's Ctrl-C goes so soon before or after the caller, ns.
_AT_ONCE_NS: Final = 2_000_000_000

Interval = tuple[int, int]


class Kill(NamedTuple):
    """A nanny ended its worker, whose process took this many bytes."""

    t: int
    worker: str
    taken: int


class Loss(NamedTuple):
    """A worker went: results that only it held, and tasks that it had; in good order or not."""

    t: int
    worker: str
    results: int
    running: int
    expected: bool


class Incidents:
    """What befell the workers of a recording within its region."""

    def __init__(self, timeline: Timeline, lanes: Lanes) -> None:
        self._t = timeline
        self._lanes = lanes
        self._region = timeline.region

    @cached_property
    def spilling(self) -> dict[int, list[Interval]]:
        """When each worker was writing results to disk or reading them back."""
        places = self._t.store.places
        workers = [i for i, place in enumerate(places) if place.role == "worker"]
        found = {p: [(a, b) for a, b, _ in self._lanes.step([p], *SPILL)] for p in workers}
        return {place: spans for place, spans in found.items() if spans}

    @cached_property
    def pauses(self) -> dict[str, list[Interval]]:
        """When each worker was paused, by its address."""
        changes = [(t, label, True) for t, _, label in self._t.marks("worker paused")]
        for name in ("worker resumed", "worker left"):
            changes += [(t, label, False) for t, _, label in self._t.marks(name)]
        found: dict[str, list[Interval]] = {}
        since: dict[str, int] = {}
        for t, worker, paused in sorted(changes):
            if paused:
                since.setdefault(worker, t)
            elif worker in since:
                found.setdefault(worker, []).append((since.pop(worker), t))
        for worker, t in since.items():
            found.setdefault(worker, []).append((t, self._region.stop))
        return {w: within for w, spans in found.items() if (within := self._within(spans))}

    @cached_property
    def kills(self) -> list[Kill]:
        """Workers that their nannies ended for their memory."""
        marks = self._t.marks("worker killed")
        rows = [(t, *label.partition(" ")[::2]) for t, _, label in marks if self._inside(t)]
        return [Kill(t, worker, max(number(taken), 0)) for t, worker, taken in rows]

    @cached_property
    def losses(self) -> list[Loss]:
        """Workers that went; with Ctrl-C all of a terminal's processes do, which is expected."""
        marks, over = self._t.marks("worker lost"), self._interrupted
        rows = [(t, label.split(" ")) for t, _, label in marks if self._inside(t)]
        return [
            Loss(
                t,
                worker,
                max(number(results), 0),
                max(number(running), 0),
                expected == "1" or abs(t - over) < _AT_ONCE_NS,
            )
            for t, (worker, results, running, expected) in ((t, x) for t, x in rows if len(x) == 4)
        ]

    @property
    def _interrupted(self) -> int:
        """When Ctrl-C ended what the caller waited for, ns; long ago where it did not."""
        region, blocks = self._region, self._t.read("block", "stop")
        mine = (blocks["place"] == region.place) & (blocks["thread"] == region.lane)
        # To close a cluster waits for its threads.
        calls = (self._t.store.strings[i] for i in blocks["call"].tolist())
        mine &= np.array([call != LOCK for call in calls], np.bool_)
        stops = blocks["stop"][mine & (blocks["stop"] <= region.stop)]
        by_hand = any("\tKeyboardInterrupt\t" in label for _, _, label in self._t.marks(RAISED))
        return int(stops.max()) if by_hand and len(stops) else -_AT_ONCE_NS

    def place(self, worker: str) -> int:
        """The index of a worker's place; -1 if it was not observed."""
        return self._by_name.get(worker, -1)

    @cached_property
    def _by_name(self) -> dict[str, int]:
        """The first place of each worker's address."""
        places = reversed([*enumerate(self._t.store.places)])
        return {place.name: i for i, place in places if place.role == "worker"}

    def _inside(self, t: int) -> bool:
        return self._region.start <= t <= self._region.stop

    def _within(self, spans: list[Interval]) -> list[Interval]:
        start, stop = self._region.start, self._region.stop
        return [(max(a, start), min(b, stop)) for a, b in spans if b > start and a < stop]
