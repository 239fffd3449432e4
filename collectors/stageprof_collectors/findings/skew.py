"""Runs that took far longer than others of their kind: for what they had to do, or where they ran.

A kind is what one line made with one prefix of keys. What a run spent importing modules does not
count, and runs that waited for others that they had launched are left out.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.groups import Groups, Row
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.event import STATUS
from stageprof_runtime.stage import IMPORT

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]
_DONE = STATUS.index("memory")
_IMPORTS = frozenset(IMPORT.values())


class Skew(NamedTuple):
    """Runs (rows) of a kind that took many times its median, of all of that kind.

    `worker`: the address of the worker on which all runs are slow; "" if it is not the worker.
    """

    row: Row
    runs: Ints
    slow: Ints
    median_s: float
    longest_s: float
    worker: str = ""
    #: by how much that worker is slower than the others
    slower: float = 1.0

    @property
    def cause(self) -> str:
        """The same for all rules that see threads idle for it."""
        return f"slow worker:{self.worker}" if self.worker else f"straggler:{self.row.layer}"


class Skews:
    """What of a recording is skewed.

    Args:
        recording: to look at.
        times: a straggler takes so many times the median of its kind.
        least: runs of a kind, of which a median says something.
        worker_times: a slow worker takes so many times what others take for the same kind.
    """

    def __init__(
        self, recording: Recording, times: float, least: float, worker_times: float
    ) -> None:
        self._recording = recording
        self._times, self._least, self._worker_times = times, least, worker_times
        self._runs = recording.timeline.runs

    @cached_property
    def groups(self) -> Groups:
        """The layers of the runs."""
        return self._recording.groups

    @cached_property
    def took(self) -> Floats:
        """Seconds of each run's function without imports."""
        whole = (self._runs["stop"] - self._runs["start"]).astype(float)
        return (whole - self._imports()) / 1e9

    @cached_property
    def _usable(self) -> NDArray[np.bool_]:
        mine: NDArray[np.bool_] = (self._runs["seen"] == 1) & (self._runs["status"] == _DONE)
        mine[self._recording.replay.launching] = False
        return mine

    def _imports(self) -> Floats:
        """Ns that each run spent in imports."""
        spans, runs = self._recording.timeline.spans, self._runs
        found = np.zeros(len(runs["run"]))
        rows = np.flatnonzero(np.isin(spans["step"], list(_IMPORTS)))
        for place in np.unique(spans["place"][rows]).tolist():
            mine = self._recording.timeline.at.of(place)
            mine = mine[np.argsort(runs["start"][mine], kind="stable")]
            here = rows[spans["place"][rows] == place]
            if len(mine):
                self._charge(found, mine, here)
        return found

    def _charge(self, found: Floats, mine: Ints, here: Ints) -> None:
        """Give each import to the run around it on its thread."""
        spans, runs = self._recording.timeline.spans, self._runs
        for thread in np.unique(runs["thread"][mine]).tolist():
            own = mine[runs["thread"][mine] == thread]
            imports = here[spans["thread"][here] == thread]
            at = np.searchsorted(runs["start"][own], spans["start"][imports], side="right") - 1
            fit = (at >= 0) & (spans["stop"][imports] <= runs["stop"][own[np.maximum(at, 0)]])
            took = (spans["stop"] - spans["start"])[imports][fit]
            np.add.at(found, own[at[fit]], took)

    @cached_property
    def all(self) -> list[Skew]:
        """One for each kind with stragglers; those of a slow worker name it."""
        found = []
        usable = np.flatnonzero(self._usable)
        of_run = self.groups.of_run[usable]
        order = np.argsort(of_run, kind="stable")
        groups, first = np.unique(of_run[order], return_index=True)
        parts = np.split(usable[order], first)[1:]  # before the first there is nothing
        for group, rows in zip(groups.tolist(), parts, strict=True):
            if len(rows) >= self._least:
                found += self._skew(group, rows)
        return found

    def _skew(self, group: int, rows: Ints) -> list[Skew]:
        took = self.took[rows]
        median = float(np.median(took))
        slow = rows[(took > self._times * median) & self._own_doing(rows)]
        if not len(slow) or median <= 0:
            return []
        longest = float(took.max())
        return [Skew(self.groups.rows[group], rows, slow, median, longest, *self._worker(rows))]

    def _own_doing(self, rows: Ints) -> NDArray[np.bool_]:
        """Which runs took long for what they did; the others only waited for a processor.

        Where the usual run of a kind computes, a slow one that computed no longer was held up.
        """
        cpu, took = self._runs["cpu"][rows] / 1e9, self.took[rows]
        usual = float(np.median(cpu))
        if usual < float(np.median(took)) / 2:
            return np.ones(len(rows), np.bool_)
        found: NDArray[np.bool_] = cpu > self._times / 2 * usual
        return found

    def _worker(self, rows: Ints) -> tuple[str, float]:
        """The worker on which the usual run of a kind takes far longer than elsewhere."""
        worker = self._runs["worker"][rows]
        times = slower(self.took[rows], worker)
        if not times or max(times.values()) < self._worker_times:
            return "", 1.0
        worst = max(times, key=lambda one: times[one])
        # One long task on a worker with few is not a slow worker: its quickest run must be slow.
        quickest = float(self.took[rows[worker == worst]].min())
        if quickest < self._worker_times * float(np.median(self.took[rows[worker != worst]])):
            return "", 1.0
        if self._beside(worst, rows):
            return "", 1.0
        return self._recording.store.strings[worst], times[worst]

    def _beside(self, worker: int, rows: Ints) -> bool:
        """Whether a worker's host has other workers that did this too: then it is as quick."""
        host = {m.address: m.host for m in Crew(self._recording).members}
        words = self._recording.store.strings
        others = [w for w in np.unique(self._runs["worker"][rows]).tolist() if w != worker]
        return host.get(words[worker]) in {host.get(words[w]) for w in others}


def slower(took: Floats, worker: Ints) -> dict[int, float]:
    """How many times as long as elsewhere the usual run of each worker takes that had several.

    Args:
        took: seconds of each run.
        worker: where it was, a small number.
    """
    order = np.argsort(took, kind="stable")
    ordered, of_worker = took[order], Rows(worker[order])
    times = {}
    for one in of_worker.numbers:
        here = of_worker.of(one)
        there = _median_without(ordered, here) if len(here) < len(ordered) - 1 else 0.0
        if len(here) > 1 and there > 0:
            times[one] = float(np.median(ordered[here])) / there
    return times


def _median_without(ordered: Floats, out: Ints) -> float:
    """The median of ascending numbers but for those at some ascending positions.

    The k-th of the others stands k places from the beginning, and one more for each of those left
    out before it: nothing is copied, where a thousand workers would each have all the others' runs.
    """
    rest = len(ordered) - len(out)
    middle = np.array([(rest - 1) // 2, rest // 2])
    before = np.searchsorted(out - np.arange(len(out)), middle, side="right")
    return float(ordered[middle + before].mean())
