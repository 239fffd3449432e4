"""On one thread nothing is counted twice, whatever a local scheduler does there."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dask
import pytest

import stageprof
from stageprof_runtime.seen import look
from stageprof_runtime.stage import STEPS
from stageprof_runtime.stem import frames_of


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


#: Tasks that a task computes, and how long each sleeps at least (s).
SLEEPS, EACH_S = 4, 0.05


def computes_with(scheduler: str) -> object:
    calls = [dask.delayed(sleeps)(EACH_S) for _ in range(SLEEPS)]
    return dask.compute(*calls, scheduler=scheduler, num_workers=1)


@pytest.mark.parametrize("inner", ["sync", "threads"])
@pytest.mark.parametrize("outer", ["sync", "threads"])
def test_what_a_task_computes_itself_is_execution(outer: str, inner: str) -> None:
    """Its own scheduler's loop was on the path, with all that its tasks did.

    While a thread of the pool begins, the first of them runs beside that loop.
    """
    call = dask.delayed(computes_with)(inner)
    with stageprof.profile(gil=False) as region:
        dask.compute(call, scheduler=outer)
    recording = region.recording
    tasks = recording.tasks().groupby("prefix")["duration_s"].sum()
    path = recording.critical_path()
    within = path[path["key"].str.startswith("sleeps")]
    computing = within[within["step"] == "compute"]["seconds"].sum()
    assert (SLEEPS - 1) * EACH_S <= computing <= 1.05 * tasks["sleeps"]
    assert recording.stages()["busy_s"]["execution"] <= 1.05 * tasks.sum()


class Pool(ThreadPoolExecutor):
    """In place of processes; says at which step its caller is seen who makes it and ends it."""

    seen: list[int]

    def __init__(self, workers: int, **_: Any) -> None:
        super().__init__(workers)
        self._look()

    def shutdown(self, *args: Any, **kwargs: Any) -> None:
        self._look()
        super().shutdown(*args, **kwargs)

    def _look(self) -> None:
        self.seen.append(look(frames_of(sys._getframe()))[0])


def test_who_waits_for_processes_to_begin_and_to_end_constructs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was `build`, of the line of the compute."""
    monkeypatch.setattr(Pool, "seen", [], raising=False)
    monkeypatch.setattr("dask.multiprocessing.ProcessPoolExecutor", Pool)
    dask.compute(dask.delayed(sleeps)(0.0), scheduler="processes", num_workers=1)
    assert {STEPS[step][1] for step in Pool.seen} == {"local.loop"}
    assert len(Pool.seen) == 2
