"""The instants that at least one of some intervals covers."""

from __future__ import annotations

import numpy as np

from stageprof_collectors.account.timeline import Ints


def union(start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """The instants that at least one of some intervals covers, as disjoint intervals in order."""
    order = np.argsort(start, kind="stable")
    a, b = start[order], np.maximum.accumulate(stop[order]) if len(start) else stop
    first = np.append(True, a[1:] > b[:-1])[: len(a)]
    heads = np.flatnonzero(first)
    ends = np.append(heads[1:] - 1, len(a) - 1) if len(a) else heads
    return a[heads], b[ends]
