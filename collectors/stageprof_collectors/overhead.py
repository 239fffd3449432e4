"""What tasks cost beside their work: on the blocking account, all that grows with their number.

The scheduler's decisions, messages and their pickling, the way to a thread; and of a graph's way
what is done task by task. Where several tasks became one, each of these would be needed once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.crowd import Crowd
from stageprof_collectors.path import Step
from stageprof_collectors.replay import Change
from stageprof_collectors.timeline import Ints
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
#: Of these the user's line is known.
_LINED: Final = STEP["build"]


class Overhead:
    """What the runs of a crowd cost beside their work."""

    def __init__(self, recording: Recording, crowd: Crowd) -> None:
        self._recording = recording
        self._crowd = crowd
        self._runs = recording.timeline.runs
        self._mine = np.zeros(len(self._runs["run"]), np.bool_)
        self._mine[crowd.rows] = True
        #: of what is done for a whole graph, how much is for the crowd
        self._part = len(crowd.rows) / max(len(self._mine), 1)

    @cached_property
    def seconds(self) -> float:
        """Seconds of the blocking account."""
        steps = (s for s in self._recording.path_steps if s.what.step in EACH)
        return sum((s.stop - s.start) * self._share(s) for s in steps) / 1e9

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
    def threads(self) -> int:
        """Threads that the tasks ran on."""
        rows = self._crowd.rows[self._runs["seen"][self._crowd.rows] == 1]
        lanes: Ints = np.stack([self._runs["wplace"][rows], self._runs["thread"][rows]])
        return max(1, int(np.unique(lanes, axis=1).shape[1]))

    def merged(self, k: float, *, fetch: float = 1.0) -> Change:
        """The change that makes one task of every `k`, which then does the work of all of them.

        `fetch`: what is left of what it takes to fetch what they need.
        """
        left = np.where(self._mine, 1.0 / k, 1.0)
        moved = np.where(self._mine, fetch, 1.0)
        return Change(lead=left, begin=left, lag=left, fetch=moved, serial=self._serial(1.0 / k))

    def _serial(self, left: float) -> Callable[[Step], float]:
        def stays(step: Step) -> float:
            return 1.0 - (1.0 - left) * self._share(step) if step.what.step in EACH else 1.0

        return stays

    def _share(self, step: Step) -> float:
        """How much of a piece of the critical path is for the crowd."""
        if step.run >= 0:
            return float(self._mine[step.run])
        if step.what.step == _LINED and step.what.label:
            return float(self._recording.store.strings[step.what.label] in self._crowd.lines)
        return self._part
