"""When Dask computed, on its own account, what a function returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stageprof_collectors.account.path import Step
from stageprof_collectors.replay.relief import Covered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stageprof_collectors.recording import Recording


class Asking:
    """The times from the hand-over of such graphs to the end of their tasks.

    Args:
        recording: of what.
        graphs: `Calls.metas`, or some of them.
    """

    def __init__(self, recording: Recording, graphs: Iterable[int]) -> None:
        owner, finished = recording.replay.owner, recording.timeline.runs["finished"]
        known = recording.timeline.graphs
        ends = {g: finished[owner == g] for g in graphs}
        self._times = Covered([(known[g].begun, int(max(end))) for g, end in ends.items()])

    def part(self, step: Step) -> float:
        """What part of a piece of the critical path is in them."""
        return self._times.part(step)
