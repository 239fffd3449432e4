"""What order of events says of workers' clocks.

A task cannot come before it was assigned, nor be reported before it ended.
"""

from __future__ import annotations

import numpy as np

from stageprof_collectors.account.attempts import Columns, Ints, outlived

#: Place -> by how much its clock is early at least, and may be at most (None: unknown), ns.
Bounds = dict[int, tuple[int, int | None]]


def of_workers(runs: Columns) -> Ints:
    """The place of the worker that told of each run; -1 where none did."""
    return np.where(runs["seen"] == 1, runs["wplace"], -1)


def bounds(runs: Columns, workers: set[int]) -> Bounds:
    """Those of each worker's place, of runs as their workers told of them."""
    at = of_workers(runs)
    known = np.iinfo(np.int64)
    least = np.full(int(at.max(initial=0)) + 2, known.min)  # the last is of those without a place
    latest = np.full(len(least), known.max)
    np.maximum.at(least, at, runs["assigned"] - runs["received"])
    # What is taken back is so at any time.
    at[(runs["finished"] <= 0) | outlived(runs)] = -1
    np.minimum.at(latest, at, runs["finished"] - runs["stop"])
    return {
        place: (int(least[place]), int(latest[place]) if latest[place] < known.max else None)
        for place in workers.intersection(np.flatnonzero(least[:-1] > known.min).tolist())
    }


def shift(least: int, latest: int | None) -> int:
    """By as little as makes no task start before it was assigned."""
    most = least if latest is None else latest
    return min(max(0, least), most) if least <= most else 0
