"""Which run had to wait for a thread, as the recording shows it; how many threads there were.

Each worker's runs take its threads in the order in which they began, each the one that is free
first. A run that began while all known threads were busy shows that there was one more.
"""

from __future__ import annotations

from heapq import heappush, heapreplace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Ints, Timeline

#: Where only a worker's loop saw a run end, it ends as late as the loop heard of it; its thread may
#: have begun the next meanwhile, and is no other thread for that.
SLACK_NS: Final = 5_000_000
#: More threads than any cluster has that one scheduler serves; a damaged recording may claim more.
MOST: Final = 100_000

#: The pool of a run that needs no thread of its own.
NO_POOL = -1


class Threads(NamedTuple):
    """Pools are the workers: the pool of each run, the threads of each pool, since when (ns).

    `free` is when the thread that a run took had become free, ns; -1 if it had done nothing.
    """

    pool: Ints
    counts: list[int]
    since: list[int]
    free: Ints


def threads(timeline: Timeline, order: Ints, occupying: NDArray[np.bool_]) -> Threads:
    """The pools of a timeline.

    Args:
        timeline: what was recorded.
        order: rows of runs in the order of their start.
        occupying: which runs took a thread.
    """
    runs = timeline.runs
    words, pool = np.unique(runs["worker"], return_inverse=True)
    pool = np.where(occupying, pool.reshape(-1), NO_POOL)
    seen = known(timeline)
    names = [timeline.store.strings[i] for i in words.tolist()]
    names = [*dict.fromkeys([*names, *seen])]  # also workers that had nothing to do
    facts = [seen.get(name, (0, 0)) for name in names]
    heaps = [[-1] * count for count, _ in facts]
    free = _taken(order, pool, runs["start"], runs["stop"], heaps)
    return Threads(pool, [max(1, len(heap)) for heap in heaps], [t for _, t in facts], free)


def known(timeline: Timeline) -> dict[str, tuple[int, int]]:
    """Workers as the scheduler saw them: address -> threads, and since when (ns)."""
    found: dict[str, tuple[int, int]] = {}
    room = MOST
    for t, _, label in timeline.marks("worker seen"):
        address, _, rest = label.partition(" ")
        count = rest.partition(" ")[0]
        if count.isdecimal() and len(count) < 5 and address not in found and room > 0:
            found[address] = int(count), t
            room -= int(count)
    return found


def _taken(order: Ints, pool: Ints, start: Ints, stop: Ints, heaps: list[list[int]]) -> Ints:
    taken = []
    rows = zip(pool[order].tolist(), start[order].tolist(), stop[order].tolist(), strict=True)
    for p, begun, ended in rows:
        if p == NO_POOL:
            taken.append(-1)
            continue
        heap = heaps[p]
        if not heap or heap[0] > begun + SLACK_NS:
            taken.append(-1)
            heappush(heap, ended)
        else:
            taken.append(heapreplace(heap, ended))
    free = np.full(len(order), -1, np.int64)
    free[order] = np.array(taken, np.int64)[: len(order)] if taken else 0
    return free
