"""What a cause costs: seconds of the blocking account that belong to some steps or runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

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
