"""Workers that were ended: the threads that were missing until others came, and work in vain.

A replay has each worker's runs on that worker and does not know that it was gone. Where tasks
waited for threads, what a missing thread would have done in that time was done by the others.
"""

from __future__ import annotations

from collections.abc import Container
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from stageprof_collectors.account.intervals import innermost, length
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.tables.crew import Crew, Member

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Interval = tuple[int, int]

#: A run that began so long after its data were there waited for a thread; with less its worker's
#: loop was on its way.
LONG_NS: Final = 5_000_000


class Absence:
    """What a crew lost with its workers, in seconds of the whole crew.

    Args:
        recording: of what.
        again: rows of runs that were lost, or done a second time.
        ended: the addresses of the workers that were ended.
    """

    def __init__(self, recording: Recording, again: Ints, ended: Container[str]) -> None:
        self._recording, self._again, self._ended = recording, again, ended
        self._crew = Crew(recording)
        self._threads = max(self._crew.threads, 1)

    @property
    def seconds(self) -> float:
        """What missing threads and work in vain took, were it done by all threads at once."""
        return self._missing() + self._vain()

    @property
    def start_s(self) -> float:
        """What the first runs on new workers took longer than others of their kind."""
        runs, member = self._recording.timeline.runs, self._crew.member_of
        took = (runs["stop"] - runs["start"]) / 1e9
        kinds = pd.factorize(self._recording.tasks()["prefix"])[0]
        alike, of_member = Rows(kinds), Rows(np.where(runs["seen"] == 1, member, -1))
        usual = cache(lambda kind: float(np.median(took[alike.of(kind)])))
        new, extra = {came for _, came in self._away if came}, 0.0
        for number, one in enumerate(self._crew.members):
            mine = of_member.of(number if one in new else -1)
            for kind, first in zip(*np.unique(kinds[mine], return_index=True), strict=True):
                extra += max(0.0, float(took[mine[first]]) - usual(int(kind)))
        return extra / self._threads

    @property
    def _away(self) -> list[tuple[Member, Member | None]]:
        """Each worker that was ended, with the one that came in its place."""
        new = [m for m in self._crew.members if m.since > self._crew.members[0].since]
        coming = iter(new)  # in order: who came before one went came before all that went later
        gone = sorted(self._crew.members, key=lambda m: m.until)
        return [
            (one, next((m for m in coming if m.since >= one.until), None))
            for one in gone
            if one.address in self._ended
        ]

    def _missing(self) -> float:
        stop = self._recording.timeline.region.stop
        spans = [(one.until, came.since if came else stop) for one, came in self._away]
        shares = [one.threads / self._threads for one, _ in self._away]
        wanted = self._wanted(min((start for start, _ in spans), default=stop))
        some = sum((b - a) * s for (a, b), s in zip(spans, shares, strict=True)) * wanted
        return max(some, self._nobody(spans)) / 1e9

    def _wanted(self, since: int) -> float:
        """The part of the runs since then that waited for a thread, at a worker or for one."""
        runs = self._recording.timeline.runs
        waited = self._recording.timeline.depends.queued | (runs["start"] - runs["ready"] > LONG_NS)
        later = runs["start"] >= since
        return float(waited[later].mean()) if later.any() else 0.0

    def _nobody(self, spans: list[Interval]) -> int:
        """For how long no worker at all was there."""
        there = [(m.since, m.until, None) for m in self._crew.members]
        every = innermost((a, b, None) for a, b in spans)
        both = innermost([*((a, b, None) for a, b in spans), *there])
        return max(0, length(both) - length(innermost(there))) if every else 0

    def _vain(self) -> float:
        """Seconds of threads in runs in vain; one thread runs one of them at a time."""
        runs = self._recording.timeline.runs
        total = 0.0
        of_worker = Rows(runs["worker"][self._again])
        for worker in of_worker.numbers:
            mine = self._again[of_worker.of(worker)]
            spans = zip(runs["start"][mine].tolist(), runs["stop"][mine].tolist(), strict=True)
            total += length(innermost((a, b, None) for a, b in spans))
        return total / 1e9 / self._threads
