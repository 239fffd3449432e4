"""What tasks cost beside their work: on the blocking account, all that grows with their number.

The scheduler's decisions, messages and their pickling, the way to a thread; and of a graph's way
what is done task by task. Where several tasks became one, each of these would be needed once.
Objects of the user's that travel with the tasks are no part of it: they would travel on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import given_back, lanes
from stageprof_collectors.account.calls import Calls
from stageprof_collectors.account.path import Step
from stageprof_collectors.findings.burden import Burdens
from stageprof_collectors.findings.crowd import Bools, Crowd
from stageprof_collectors.findings.embedded import HEAVY, HEAVY_BYTES, embedded
from stageprof_collectors.findings.without import Without
from stageprof_collectors.replay.relief import run_windows
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.replay.toll import toll
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Steps that are taken once for each task, in its run or on its graph's way.
EACH: Final = frozenset(
    STEP[name]
    for name in (
        "build", "materialize", "expr", "lowlevel", "graph.dump", "graph.load", "graph.send",
        "order", "state", "transition", "place", "local.loop", "task.dump", "task.load",
        "task.send", "compress", "decompress", "wait.thread",
    )
)  # fmt: skip
#: Workers tell of so many times more runs than the scheduler only if that did not tell of all.
_ALL: Final = 1.05
#: Objects that are looked at: the costliest.
_OBJECTS: Final = 5
#: Of these the user's line is known.
_LINED: Final = STEP["build"]


class Overhead:
    """What the runs of a crowd cost beside their work.

    Args:
        recording: that they are of.
        crowd: the runs.
        carried: with what the user's objects cost that travel with them.
    """

    def __init__(self, recording: Recording, crowd: Crowd, *, carried: bool = False) -> None:
        self._recording = recording
        self._crowd = crowd
        self._carried = carried
        self._runs = recording.timeline.runs
        self._mine = np.zeros(len(self._runs["run"]), np.bool_)
        self._mine[crowd.rows] = True
        #: of what is done for a whole graph, how much is for the crowd
        self._part = len(crowd.rows) / max(len(self._mine), 1)

    @cached_property
    def seconds(self) -> float:
        """Seconds of the blocking account."""
        return toll(self._recording, self.merged(math.inf))

    @property
    def each_s(self) -> float:
        """The same for one task."""
        return self.seconds / len(self._crowd.rows)

    @cached_property
    def work_s(self) -> float:
        """Seconds that the function of the middle one of the tasks took on its thread."""
        rows = self._crowd.rows
        return float(np.median(self._runs["stop"][rows] - self._runs["start"][rows])) / 1e9

    @cached_property
    def at_once(self) -> int:
        """The most of the tasks that a program can put together: of one layer, in one graph.

        What a loop computes each time is no more for that; graphs of one task each, as `submit`
        makes them, are handed over together, and so are those of one task of each layer that are
        not waited for.
        """
        recording, rows = self._recording, self._crowd.rows
        graphs, layers = recording.timeline.graph_rows[rows] + 1, recording.groups.of_run[rows]
        pairs = graphs * (int(layers.max()) + 1) + layers
        _, pair, number = np.unique(pairs, return_inverse=True, return_counts=True)
        calls = Calls(recording)
        free = np.isin(graphs - 1, sorted({*calls.own} - {*calls.blocking}))
        alone = (number[pair] == 1) & free | (np.bincount(graphs)[graphs] == 1)
        together = np.where(alone, -1 - layers, pairs)
        return int(np.unique(together, return_counts=True)[1].max())

    @cached_property
    def threads(self) -> int:
        """Threads that the tasks ran on."""
        rows = self._crowd.rows[self._runs["seen"][self._crowd.rows] == 1]
        return max(1, len(pd.unique(lanes(self._runs)[rows])))

    def merged(self, k: float, *, fetch: float = 1.0) -> Change:
        """The change that makes one task of every `k`, which then does the work of all of them.

        `fetch`: what is left of what it takes to fetch what they need.
        """
        gone = 1.0 - 1.0 / k
        return Change(
            lead=1.0 - gone * self._usual["lead"],
            begin=1.0 - gone * self._usual["begin"],
            lag=1.0 - gone * self._usual["lag"],
            fetch=np.where(self._mine, fetch, 1.0),
            serial=self._serial(1.0 - gone),
        )

    def saving(self, k: float) -> tuple[float, float]:
        """Seconds that this change would save, at least and at most.

        Where the scheduler had no time to tell of all runs, a replay lacks most of what they
        waited for: then it may be anything up to what the change takes from the account.
        """
        change = self.merged(k)
        low, high = self._recording.replay.saving(change)
        if self._recording.store.rows("run") <= _ALL * len(self._mine):
            return low, high
        return low, max(high, toll(self._recording, change))

    @cached_property
    def _usual(self) -> dict[str, NDArray[np.float64]]:
        """How much of each part of a run is what such a run takes usually; 0 of other runs.

        The first on each thread may wait for a process to start, and will do so in any case; one
        that a worker had to give back waited for what kept that worker.
        """
        rows = np.flatnonzero(self._mine)
        seldom = (self._first | given_back(self._runs))[rows]
        windows, found = run_windows(self._recording, self._runs), {}
        for part in ("lead", "begin", "lag"):
            start, stop = windows[part]
            took, left = np.maximum((stop - start)[rows], 0).astype(float), self._alone(part)[rows]
            usual = np.median(took * left) / np.maximum(took, 1.0)
            found[part] = np.zeros(len(self._mine))
            found[part][rows] = np.where(seldom, np.minimum(left, usual), left)
        return found

    @cached_property
    def _without(self) -> list[Change]:
        """For each object that travels with tasks and takes long, the run without it."""
        recording = self._recording
        if self._carried:
            return []
        least = HEAVY * recording.wall
        found = embedded(recording)
        heavy = (t for t in found if t.total_s >= least or t.sent_bytes >= HEAVY_BYTES)
        things = list(islice(heavy, _OBJECTS))
        burdens = Burdens(recording, things)
        return [Without(recording, thing, burdens).everywhere() for thing in things]

    def _alone(self, part: str) -> NDArray[np.float64]:
        """What is left of a part of each run without all these objects."""
        left = np.ones(len(self._mine))
        for change in self._without:
            left -= 1.0 - np.asarray(getattr(change, part, 1.0), dtype=float)
        return np.maximum(left, 0.0)

    @cached_property
    def _first(self) -> Bools:
        """Which runs are the first on their threads."""
        order = np.argsort(self._runs["start"], kind="stable")
        first = np.zeros(len(order), np.bool_)
        first[order] = ~pd.Series(lanes(self._runs)[order]).duplicated()
        return first

    def _serial(self, left: float) -> Callable[[Step], float]:
        def stays(step: Step) -> float:
            if step.what.step not in EACH:
                return 1.0
            theirs = sum(1.0 - change.serial(step) for change in self._without if change.serial)
            return 1.0 - (1.0 - left) * self._share(step) * max(0.0, 1.0 - theirs)

        return stays

    def _share(self, step: Step) -> float:
        """How much of a piece of the critical path that is for no run is for the crowd."""
        if step.what.step == _LINED and step.what.label:
            return float(self._recording.store.strings[step.what.label] in self._crowd.lines)
        return self._part
