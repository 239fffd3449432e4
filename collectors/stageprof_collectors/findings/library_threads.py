"""Threads of libraries that tasks call (OpenMP, BLAS, a training's own): they use CPUs as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stageprof_collectors.account.timeline import Ints, present
from stageprof_collectors.findings.standing import series

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def library_s(recording: Recording, rows: Ints) -> float:
    """Seconds of CPUs that the processes of some runs took, while they ran, beside the runs' own.

    0 where no process was sampled. What Dask does meanwhile in these processes is in it.
    """
    runs, taken = recording.timeline.runs, series(recording, "process.cpu_s")
    total = 0.0
    for place in present(runs["wplace"][rows]):
        if place in taken:
            mine = rows[runs["wplace"][rows] == place]
            edges = _covered(runs["start"][mine], runs["stop"][mine])
            took = np.diff(np.interp(edges, *taken[place]), axis=0).sum()
            total += max(0.0, float(took - runs["cpu"][mine].sum() / 1e9))
    return total


def _covered(start: Ints, stop: Ints) -> Ints:
    """From when to when (two rows) at least one of some intervals lasts."""
    order = np.argsort(start, kind="stable")
    begin, until = start[order], np.maximum.accumulate(stop[order])
    apart = begin[1:] > until[:-1]
    return np.stack([begin[np.append(True, apart)], until[np.append(apart, True)]])
