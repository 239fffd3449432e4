"""What a worker that went may have done of the tasks that it had and had not told of.

A worker tells of a run when it ends, or lasts. Of those that went with it only that it had them is
known: it can have begun as many as it has threads, each when that was free; the others waited.
"""

from __future__ import annotations

from heapq import heapreplace

import numpy as np

from stageprof_collectors.account.thread import known
from stageprof_collectors.account.timeline import LOCAL, Ints, Timeline
from stageprof_runtime.event import STATUS

_LOST = STATUS.index("lost")


def took(timeline: Timeline) -> Ints:
    """How long each run took or may have taken at most, ns; -1 of one that cannot have begun."""
    runs = timeline.runs
    lengths: Ints = runs["stop"] - runs["start"]
    lost = (runs["status"] == _LOST) & (runs["seen"] == 0) & (runs["run"] < LOCAL)
    threads, words = known(timeline), timeline.store.strings
    for worker in np.unique(runs["worker"][lost]).tolist():
        mine = np.flatnonzero((runs["worker"] == worker) & (lost | (runs["seen"] == 1)))
        count, _ = threads.get(words[worker], (1, 0))
        _cut_off(timeline, lengths, mine, [0] * max(1, count))
    return lengths


def _cut_off(timeline: Timeline, lengths: Ints, mine: Ints, free: list[int]) -> None:
    """The same of one worker's, of which nobody told that they began; `free` is when threads are.

    They follow what it had told that it began before it went.
    """
    runs = timeline.runs
    begun = np.where(runs["seen"][mine] == 1, runs["start"][mine], runs["finished"][mine])
    for row in mine[np.lexsort((runs["assigned"][mine], begun))].tolist():
        ended = int(runs["finished" if runs["status"][row] == _LOST else "stop"][row])
        if runs["seen"][row]:
            heapreplace(free, ended)
            continue
        left = ended - max(free[0], int(runs["assigned"][row]))
        lengths[row] = left if left > 0 else -1
        if left > 0:
            heapreplace(free, ended)
