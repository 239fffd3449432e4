"""Memory of the workers: what each may take, and what it took.

Thresholds are those in force on the workers, as they said themselves. Times are ns on the region's
clock, sizes bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stageprof_collectors.account.attempts import lookup
from stageprof_collectors.account.timeline import Ints, Timeline
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.tables.fact import rows_of, told


class Limits(NamedTuple):
    """What a worker may take, and the fractions of it at which what happens; 0: never."""

    limit: float
    target: float
    spill: float
    pause: float
    terminate: float


@dataclass(frozen=True)
class Taken:
    """Memory of one worker over time: instants and bytes, all of the same length."""

    t: Ints
    process: Ints
    managed: Ints
    spilled: Ints

    @property
    def peak(self) -> int:
        """The most that the process was seen to take."""
        return int(self.process.max(initial=0))

    @property
    def managed_peak(self) -> int:
        """The most that Dask took the results in memory for."""
        return int(self.managed.max(initial=0))

    @property
    def spilled_peak(self) -> int:
        """The most that lay on disk at once."""
        return int(self.spilled.max(initial=0))

    @property
    def results_peak(self) -> int:
        """The most that results took in memory and on disk together."""
        return int((self.managed + self.spilled).max(initial=0))

    @property
    def whole_peak(self) -> int:
        """The most that the process would have taken had nothing been on disk."""
        return int((self.process + self.spilled).max(initial=0))


_NOTHING = Taken(*(np.zeros(0, np.int64),) * 4)
_LIMITS = ("limit", "target", "spill", "pause", "terminate")
_TAKEN = ("process", "managed", "spilled")
#: More than any machine has, bytes.
MOST = 1e18


class Memory:
    """What is known of the memory of a recording's workers; `place` is a worker's index."""

    def __init__(self, timeline: Timeline) -> None:
        self._t = timeline
        places = timeline.store.places
        #: places of the workers that were observed
        self.places = [i for i, place in enumerate(places) if place.role == "worker"]

    # -- what it may take and took --------------------------------------------------------------

    @cached_property
    def limits(self) -> dict[int, Limits]:
        """Limits of each worker that has one."""
        facts = {name: told(self._t.store, f"worker.memory.{name}") for name in _LIMITS}
        limited = {p: v for p, v in facts["limit"].items() if v > 0}
        return {p: Limits(*(facts[name].get(p, 0.0) for name in _LIMITS)) for p in limited}

    def of_machine(self, place: int) -> int:
        """Bytes that Dask deals out to the workers of a worker's machine or container; 0: unknown.

        That is what there is, but for what the container or the process may not take.
        """
        nbytes = told(self._t.store, "worker.host_memory").get(place, 0.0)
        return int(nbytes) if 0 < nbytes < MOST else 0

    @cached_property
    def taken(self) -> dict[int, Taken]:
        """What each worker took, twice a second and at some tasks' ends."""
        return {place: self._taken(place) for place in self.places}

    def of(self, place: int) -> Taken:
        """What a worker took; nothing if it was not observed."""
        return self.taken.get(place, _NOTHING)

    # -- how --------------------------------------------------------------------------------------

    @cached_property
    def _samples(self) -> dict[str, tuple[Rows, Ints, Ints]]:
        """Rows by place, time and value of the samples of each name."""
        table = self._t.read("sample", "t")
        rows = {name: rows_of(self._t.store, f"memory.{name}") for name in _TAKEN}
        columns = table["place"], table["t"], table["value"]
        taken = {name: [column[r] for column in columns] for name, r in rows.items()}
        return {n: (Rows(place), t, v.astype(np.int64)) for n, (place, t, v) in taken.items()}

    def _taken(self, place: int) -> Taken:
        series = {n: _at(place, *columns) for n, columns in self._samples.items()}
        before, after = self._around_runs(place)
        t = np.concatenate([series["process"][0], before[0], after[0]])
        process = np.concatenate([series["process"][1], before[1], after[1]])
        order = np.argsort(t, kind="stable")
        t = t[order]
        held = np.concatenate([series["managed"][0], before[0]])
        managed = np.concatenate([series["managed"][1], before[2]])
        return Taken(t, process[order], _last(t, held, managed), _last(t, *series["spilled"]))

    def _around_runs(self, place: int) -> tuple[list[Ints], list[Ints]]:
        """[t, process, managed] before runs, and [t, process] after them."""
        mine = self._around_of.of(place)
        rows = self.around["row"][mine]
        start, stop = self._t.runs["start"][rows], self._t.runs["stop"][rows]
        before, after, held = (self.around[n][mine] for n in ("before", "after", "managed"))
        return [start, before, held], [stop, after]

    @cached_property
    def _around_of(self) -> Rows:
        """Rows of `around` by place."""
        return Rows(self.around["place"])

    @cached_property
    def around(self) -> dict[str, Ints]:
        """The measurements around runs: row of the run, place, before, after, managed."""
        table, runs = self._t.store.table("memory"), self._t.runs
        at, found = lookup(runs["run"], runs["wplace"], table["run"], table["place"])
        known = np.flatnonzero(found)
        columns = {name: table[name][known] for name in ("place", "before", "after", "managed")}
        return {"row": at[known], **columns}


def _at(place: int, rows: Rows, t: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Time and value of what is of one place, in order."""
    mine = rows.of(place)
    mine = mine[np.argsort(t[mine], kind="stable")]
    return t[mine], values[mine]


def _last(when: Ints, t: Ints, values: Ints) -> Ints:
    """At each instant the value known last; 0 before the first."""
    if not len(t):
        return np.zeros(len(when), np.int64)
    order = np.argsort(t, kind="stable")
    at = np.searchsorted(t[order], when, side="right") - 1
    return np.where(at >= 0, values[order][np.maximum(at, 0)], 0)
