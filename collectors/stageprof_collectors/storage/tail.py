"""What workers had not told when they died or were asked in vain: the end of what they did.

A worker tells what it did at most ten times a second, and at least twice. One that leaves in good
order tells the rest; of one that is killed another one on its host does, or the client if that is
there, but for the last tenth of a second; else nobody does. One whose event loop stands still as
the recording ends is asked for the rest, and does not answer in time. The scheduler knows of the
tasks all the same.
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
    #: from what it told last until the scheduler saw it go, or asked in vain, s
    seconds: float
    #: tasks that ended, as the scheduler knows, and of which the worker did not tell
    tasks: int
    #: whether it went; else it did not answer as the recording ended
    died: bool


def tails(recording: Recording) -> list[Tail]:
    """What is missing of each worker that did not tell all, those that went first."""
    timeline = recording.timeline
    told = {p.name: i for i, p in enumerate(timeline.store.places) if p.role == "worker"}
    well = {timeline.store.places[p].name for _, p, _ in timeline.marks("told all")}
    untold = _untold(timeline)
    ends = []
    for t, label in ((t, label) for t, _, label in timeline.marks("worker lost")):
        worker, expected = label.partition(" ")[0], number(label.rpartition(" ")[2]) == 1
        if untold.get(worker, 0) or not (expected or worker in well):
            ends.append((worker, t, True))
    stuck = ((t, worker) for t, _, worker in timeline.marks("not drained"))
    ends += [(worker, t, False) for t, worker in stuck if worker not in well]
    found: dict[str, Tail] = {}
    for worker, t, died in ends:
        if worker in told and worker not in found:
            silent = _silent_s(timeline, told[worker], t)
            found[worker] = Tail(worker, silent, untold.get(worker, 0), died)
    return list(found.values())


def _untold(timeline: Timeline) -> dict[str, int]:
    """Worker -> tasks that ended well and whose own row never came."""
    runs, words = timeline.runs, timeline.store.strings
    rows = (runs["finished"] > 0) & (runs["status"] == _DONE) & (runs["seen"] == 0)
    which, counts = np.unique(runs["worker"][rows], return_counts=True)
    return {words[i]: n for i, n in zip(which.tolist(), counts.tolist(), strict=True)}


def _silent_s(timeline: Timeline, place: int, until: int) -> float:
    last = np.array([timeline.store.origins[place].last_t], np.int64)
    return max(0.0, (until - int(timeline.clocks[place].read(last)[0])) / 1e9)
