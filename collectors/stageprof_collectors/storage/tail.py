"""What workers that died had not told yet: the end of what they did, which nobody knows.

A worker tells what it did at most ten times a second, and at least twice. One that leaves in good
order tells the rest; of one that is killed another one on its host does, or the client if that is
there, but for the last tenth of a second; else nobody does. The scheduler knows of its tasks all
the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stageprof_collectors.text import number
from stageprof_runtime.event import STATUS

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Timeline
    from stageprof_collectors.recording import Recording

_DONE = STATUS.index("memory")


class Tail(NamedTuple):
    """The end of one worker that is missing."""

    #: its address
    worker: str
    #: from what it told last until the scheduler saw it go, s
    seconds: float
    #: tasks that ended, as the scheduler knows, and of which the worker did not tell
    tasks: int


def tails(recording: Recording) -> list[Tail]:
    """What is missing of each worker that went without telling all."""
    timeline = recording.timeline
    told = {p.name: i for i, p in enumerate(timeline.store.places) if p.role == "worker"}
    well = {timeline.store.places[p].name for _, p, _ in timeline.marks("told all")}
    untold = _untold(timeline)
    found = []
    for t, label in ((t, label) for t, _, label in timeline.marks("worker lost")):
        worker, expected = label.partition(" ")[0], number(label.rpartition(" ")[2]) == 1
        tasks = untold.get(worker, 0)
        if worker in told and (tasks or not (expected or worker in well)):
            found.append(Tail(worker, _silent_s(timeline, told[worker], t), tasks))
    return found


def _untold(timeline: Timeline) -> dict[str, int]:
    """Worker -> tasks that ended well and whose own row never came."""
    runs, words = timeline.runs, timeline.store.strings
    rows = (runs["finished"] > 0) & (runs["status"] == _DONE) & (runs["seen"] == 0)
    which, counts = np.unique(runs["worker"][rows], return_counts=True)
    return {words[i]: n for i, n in zip(which.tolist(), counts.tolist(), strict=True)}


def _silent_s(timeline: Timeline, place: int, until: int) -> float:
    last = np.array([timeline.store.origins[place].last_t], np.int64)
    return max(0.0, (until - int(timeline.clocks[place].read(last)[0])) / 1e9)
