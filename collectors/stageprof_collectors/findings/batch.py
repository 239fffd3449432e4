"""How many tasks should become one: so many that what each costs beside its work matters no more.

But not so many that threads are left without any, and no larger a piece than memory has room for.
"""

from __future__ import annotations

import math

from stageprof_collectors.findings.overhead import Overhead

#: Overheads that a task's work should be worth: one in twenty is 5 %, which nobody notices.
WORTH = 20
#: Tasks that each thread should get at least: with fewer, threads stand idle while the last ends.
TASKS_PER_THREAD = 4


def batch(overhead: Overhead, tasks: int, most: float = math.inf) -> float:
    """Tasks that should become one; below 2 there is nothing to gain.

    Args:
        overhead: what the tasks cost beside their work.
        tasks: how many of them can be put together (`Overhead.at_once`).
        most: no more than this.
    """
    # Seconds of the blocking account count once for all threads that wait meanwhile.
    worth = WORTH * overhead.each_s * overhead.threads / max(overhead.work_s, 1e-7)
    enough = tasks / (TASKS_PER_THREAD * overhead.threads)
    return min(worth, enough, most)


def rounded(value: float) -> int:
    """A number that people write: 1, 2 or 5 and noughts, not above the value (1 at least)."""
    if value < 1:
        return 1
    power = int(10 ** math.floor(math.log10(value)))
    return max(n * power for n in (1, 2, 5) if n * power <= value)
