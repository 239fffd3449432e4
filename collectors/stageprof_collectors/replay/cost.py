"""What a cause costs: seconds of the blocking account that belong to some steps or runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def cost_of(
    recording: Recording,
    *,
    steps: Collection[int] | None = None,
    runs: Collection[int] | None = None,
) -> float:
    """Seconds of the blocking account; with both, of those steps within those runs.

    Args:
        recording: whose account.
        steps: step codes (see `stage.STEPS`); None for all.
        runs: rows of `Timeline.runs`; None for all, and for what belongs to no run.
    """
    wanted = None if runs is None else frozenset(int(run) for run in runs)
    total = sum(
        step.stop - step.start
        for step in recording.path_steps
        if (steps is None or step.what.step in steps) and (wanted is None or step.run in wanted)
    )
    return total / 1e9


def costs_of_runs(recording: Recording, steps: Collection[int]) -> NDArray[np.float64]:
    """Seconds of the blocking account that are steps of each run."""
    within = [s for s in recording.path_steps if s.run >= 0 and s.what.step in steps]
    took = [(step.stop - step.start) / 1e9 for step in within]
    found = np.zeros(len(recording.timeline.runs["run"]))
    np.add.at(found, [step.run for step in within], took)
    return found


def cost_of_graphs(recording: Recording, graphs: Collection[int]) -> float:
    """Seconds of the blocking account from each graph's call to its last task."""
    return min(sum(costs_of_graphs(recording, graphs)), recording.walls.seconds())


def costs_of_graphs(recording: Recording, graphs: Collection[int]) -> list[float]:
    """The same of each graph, in the order of their calls."""
    owner, known = recording.replay.owner, recording.timeline.graphs
    stop = np.zeros(len(known), np.int64)
    np.maximum.at(stop, owner[owner >= 0], recording.timeline.runs["finished"][owner >= 0])
    spans = sorted((known[g].begun, max(int(stop[g]), known[g].taken)) for g in graphs)
    return [recording.walls.seconds(begin, end) for begin, end in spans]
