"""Computations of threads that the account is not of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: With this share outside nothing is known of what other threads wait for.
_ELSEWHERE: Final = 0.9


def by_other_threads(recording: Recording) -> int:
    """Graphs that threads other than the region's handed over, where these are what it is about.

    0 where the region's own thread handed over as many, or waited for Dask itself.
    """
    region = recording.timeline.region
    if region.attached or recording.stages()["share"][Stage.OUTSIDE] <= _ELSEWHERE:
        return 0
    submits = [graph.submit for graph in recording.timeline.graphs if graph.submit]
    theirs = sum(s.place == region.place and s.thread != region.thread for s in submits)
    return theirs if 2 * theirs > len(submits) else 0
