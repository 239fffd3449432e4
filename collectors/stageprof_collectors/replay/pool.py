"""The threads that a replay has: those of each worker, or all together, or other ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.thread import NO_POOL
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.replay.model import Model


def pools(
    model: Model, threads: int | None, workers: int | None, *, together: bool
) -> tuple[list[int], list[list[int]]]:
    """The pool of each run, and since when each thread of each pool is there (ns).

    Args:
        model: the recorded runs.
        threads: threads of every worker (of a local scheduler: its workers); None: as they were.
        workers: how many workers the cluster has; None: as many as it had.
        together: one pool for a cluster (and one for local schedulers) instead of one a worker.
    """
    was = model.threads
    pool, counts = was.pool, was.counts
    since = [max(0, t - model.origin) for t in was.since]
    local = np.zeros(len(counts), np.bool_)
    local[pool[model.local & (pool != NO_POOL)]] = True
    had = [i for i, here in enumerate(local.tolist()) if not here]
    sizes = [max(1, threads) if threads is not None else count for count in counts]
    if workers is not None and had:
        size = (
            max(1, threads) if threads is not None else round(sum(sizes[i] for i in had) / len(had))
        )
        pool = _spread(model, pool, local, max(1, workers))
        kept = [i for i in range(len(counts)) if local[i]]
        sizes = [size] * max(1, workers) + [sizes[i] for i in kept]
        since = [min(since[i] for i in had)] * max(1, workers) + [since[i] for i in kept]
        local = np.array([False] * max(1, workers) + [True] * len(kept))
    if together:
        kind = np.append(local.astype(np.int64), NO_POOL)
        mine = zip(sizes, since, local.tolist(), strict=True)
        all_: list[list[int]] = [[], []]
        for count, t, here in mine:
            all_[int(here)] += [t] * count
        return kind[pool].tolist(), all_
    return pool.tolist(), [[t] * count for count, t in zip(sizes, since, strict=True)]


def _spread(model: Model, pool: Ints, local: NDArray[np.bool_], workers: int) -> Ints:
    """The runs of a cluster dealt out to workers in the order of their start; others after them."""
    spread = pool.copy()
    rows = model.order[(pool[model.order] != NO_POOL) & ~model.local[model.order]]
    spread[rows] = np.arange(len(rows)) % workers
    there = np.flatnonzero((pool != NO_POOL) & model.local)
    spread[there] = workers + (np.cumsum(local) - 1)[pool[there]]
    return spread
