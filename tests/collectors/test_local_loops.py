"""On one thread nothing is counted twice, whatever a local scheduler does there."""

from __future__ import annotations

import time

import dask
import pytest

import stageprof


def sleeps(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def computes(number: int) -> object:
    calls = [dask.delayed(sleeps)(0.01 * i) for i in range(number)]
    return dask.compute(*calls, scheduler="sync")


@pytest.mark.parametrize("nested", [False, True])
def test_the_work_of_the_synchronous_scheduler_is_the_time_that_it_took(nested: bool) -> None:
    """Its loop had all of what its tasks did as well."""
    call = dask.delayed(computes if nested else sleeps)
    with stageprof.profile(gil=False) as region:
        dask.compute(*[call(5 if nested else 0.05) for _ in range(4)], scheduler="sync")
    recording = region.recording
    steps = recording.steps().set_index("step")
    assert steps["busy_s"].sum() <= recording.wall * 1.01
    assert steps["busy_s"]["compute"] == pytest.approx(steps["wall_s"]["compute"], rel=0.01)
    layers = recording.layers()
    assert layers["execution_s"].sum() + layers["scheduling_s"].sum() <= recording.wall * 1.01
