"""What order of events says of workers' clocks.

A task cannot come before it was assigned, nor be reported before it ended.
"""

from __future__ import annotations

import numpy as np

from stageprof_collectors.account.attempts import Columns, Ints, outlived
from stageprof_collectors.storage.rows import Rows

#: Place -> by how much its clock is early at least, and may be at most (None: unknown), ns.
Bounds = dict[int, tuple[int, int | None]]


def of_workers(runs: Columns) -> Ints:
    """The place of the worker that told of each run; -1 where none did."""
    return np.where(runs["seen"] == 1, runs["wplace"], -1)


def bounds(runs: Columns, workers: set[int]) -> Bounds:
    """Those of each worker's place, of runs as their workers told of them."""
    early, late = runs["assigned"] - runs["received"], runs["finished"] - runs["stop"]
    # What is taken back is so at any time.
    told = (runs["finished"] > 0) & ~outlived(runs)
    found: Bounds = {}
    rows = Rows(of_workers(runs))
    for place in workers.intersection(rows.numbers):
        mine = rows.of(place)
        done = late[mine][told[mine]]
        found[place] = int(early[mine].max()), int(done.min()) if len(done) else None
    return found


def shift(least: int, latest: int | None) -> int:
    """By as little as makes no task start before it was assigned."""
    most = least if latest is None else latest
    return min(max(0, least), most) if least <= most else 0
