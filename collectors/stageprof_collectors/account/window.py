"""Which part of its run a piece of the critical path belongs to."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.path import Step
from stageprof_collectors.replay.model import Model
from stageprof_runtime.stage import Stage, stage_of

#: The parts of a run that a change can scale, in order.
PARTS = ("lead", "fetch", "begin", "compute", "lag")


class Windows:
    """The pieces of a critical path by run and part."""

    def __init__(self, model: Model, steps: list[Step]) -> None:
        self._steps = [step for step in steps if step.run >= 0]
        self._model = model
        rows = sorted({step.run for step in self._steps})
        ends = (model.received, model.ready, model.start, model.stop, model.finished)
        columns = (end[rows].tolist() for end in ends)
        self._ends = dict(zip(rows, zip(*columns, strict=True), strict=True)) if rows else {}

    def part(self, step: Step) -> str:
        """The part of its run that a piece belongs to; "" if to none of them."""
        if step.run not in self._ends:
            return ""
        received, ready, start, stop, finished = self._ends[step.run]
        if step.start < received:
            return "lead"
        if step.start < ready:
            return "fetch"
        if step.start < start:
            return "begin"
        return "compute" if step.start < stop else "lag" if step.start < finished else ""

    def shares(self, stage: Stage) -> dict[str, NDArray[np.float64]]:
        """For each part the share of a stage in it, by row: off the path, that of all on it."""
        whole: defaultdict[tuple[str, int], int] = defaultdict(int)
        mine: defaultdict[tuple[str, int], int] = defaultdict(int)
        for step in self._steps:
            part = self.part(step)
            for row in (step.run, -1):
                whole[part, row] += step.stop - step.start
                mine[part, row] += (step.stop - step.start) * (stage_of(step.what.step) == stage)
        found = {}
        for part in PARTS:
            common = mine[part, -1] / max(whole[part, -1], 1)
            found[part] = np.full(self._model.n, common)
        for (part, row), seconds in whole.items():
            if part and row >= 0:
                found[part][row] = mine[part, row] / max(seconds, 1)
        return found
