"""When the call began that handed a graph over, where a local scheduler runs it on the spot."""

from __future__ import annotations

import dask
import numpy as np
import pytest

import stageprof


def spend(seconds: float) -> float:
    """A task that takes its time."""
    import time

    time.sleep(seconds)
    return seconds


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_a_compute_begins_after_the_one_before_has_returned(scheduler: str) -> None:
    """On a local scheduler the first one's own work comes after its hand-over."""
    with stageprof.profile(gil=False) as prof:
        for _ in range(3):
            dask.compute(*(dask.delayed(spend)(0.05) for _ in range(4)), scheduler=scheduler)
    table, tasks = prof.recording.computations(), prof.recording.tasks()
    first, last = (np.sort(tasks[name])[at::4] for name, at in (("start_s", 0), ("stop_s", 3)))

    assert (table["start_s"][1:].to_numpy() >= table["stop_s"][:-1].to_numpy()).all()
    assert (table["submitted_s"] >= table["start_s"]).all()
    assert (table["start_s"] + table["first_task_s"]).tolist() == pytest.approx(first.tolist())
    assert (table["start_s"] + table["duration_s"]).tolist() == pytest.approx(last.tolist())


def inner() -> float:
    """A task that computes by itself, on the thread that runs it."""
    return float(dask.delayed(spend)(0.05).compute(scheduler="sync"))


def test_what_a_task_computes_begins_within_the_compute_around_it() -> None:
    """And the compute that comes next begins after both."""
    with stageprof.profile(gil=False) as prof:
        dask.delayed(inner)().compute(scheduler="sync")
        dask.delayed(spend)(0.05).compute(scheduler="sync")
    outer, nested, following = prof.recording.computations().to_dict("records")

    assert outer["submitted_s"] <= nested["start_s"] <= nested["stop_s"] <= outer["stop_s"]
    assert following["start_s"] >= outer["stop_s"]
