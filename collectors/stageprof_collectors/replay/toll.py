"""What a change would take from the blocking account: the cost of what it takes away.

Not what it saves: that is a replay's to say.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import given_back
from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import Columns
from stageprof_collectors.replay.replay import Change
from stageprof_runtime.stage import Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Parts of a run in their order, each with the instant that ends it.
_PARTS: Final = (
    ("lead", "received"),
    ("fetch", "ready"),
    ("begin", "start"),
    ("compute", "stop"),
)


def toll(recording: Recording, change: Change) -> float:
    """Seconds of the blocking account that a change takes away."""
    return max(0.0, sum(tolls(recording, change).values()))


def tolls(recording: Recording, change: Change) -> dict[Stage, float]:
    """The same by stage, most first; below 0 where the change adds."""
    runs = recording.timeline.runs
    back = given_back(runs)
    gone: defaultdict[Stage, float] = defaultdict(float)
    for step in recording.path_steps:
        ns = (step.stop - step.start) * (1 - _left(runs, back, step, change))
        gone[stage_of(step.what.step)] += ns / 1e9
    return dict(sorted(gone.items(), key=lambda item: -item[1]))


def _left(runs: Columns, back: NDArray[np.bool_], step: Step, change: Change) -> float:
    """The fraction that is left of a piece of the critical path."""
    if step.run < 0:
        return change.serial(step) if change.serial and step.run == -1 else 1.0
    factor = getattr(change, _part(runs, back, step))
    return float(factor[step.run]) if isinstance(factor, np.ndarray) else float(factor)


def _part(runs: Columns, back: NDArray[np.bool_], step: Step) -> str:
    """The part of its run that a piece is of; what a worker had to give back has lead and lag."""
    if back[step.run] and step.start >= runs["assigned"][step.run]:
        return "lag"
    return next((p for p, end in _PARTS if step.start < runs[end][step.run]), "lag")
