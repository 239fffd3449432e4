"""Threads of libraries that tasks call (OpenMP, BLAS, a training's own): they use CPUs as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stageprof_collectors.account.timeline import Ints, present
from stageprof_collectors.account.union import union
from stageprof_collectors.findings.standing import series
from stageprof_collectors.findings.waiters import computed_until

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def library_s(recording: Recording, rows: Ints, within: Ints | None = None) -> float:
    """Seconds of CPUs that the processes of some runs took beside all their runs.

    0 where no process was sampled. What Dask does meanwhile in these processes is in it.

    Args:
        recording: of what.
        rows: the runs.
        within: from when to when (two rows); None: while any of the runs lasts.
    """
    runs, taken = recording.timeline.runs, series(recording, "process.cpu_s")
    of = recording.timeline.gil.process
    # Of several places in a process each tells of all that it took.
    places = {int(of[place]): place for place in present(runs["wplace"][rows]) if place in taken}
    total = 0.0
    for process, place in places.items():
        there = np.flatnonzero(runs["wplace"] >= 0)
        every = there[of[runs["wplace"][there]] == process]
        mine = np.intersect1d(rows, every)
        whole = union(runs["start"][mine], runs["stop"][mine])
        edges = np.stack(whole) if within is None else within
        start, stop, cpu = (runs[name][every] for name in ("start", "stop", "cpu"))
        t, seconds = taken[place]
        # Between two samples what the runs took is no better known than what their process did.
        beside = seconds - np.interp(t, *computed_until(start, stop, cpu)) / 1e9
        total += max(0.0, float(np.diff(np.interp(edges, t, beside), axis=0).sum()))
    return total
