"""Python without a GIL: to be run with one (docs/gil.md says how); skipped where there is a GIL."""

from __future__ import annotations

import time

import dask
import numpy as np
import pytest
from dask.delayed import delayed

import stageprof
from clusters import separate
from stageprof_runtime.unlocked import unlocked

FREE = unlocked()
TASKS, TASK_S, THREADS = 8, 0.5, 2

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not FREE, reason="this Python has a GIL"),
]


def spin() -> int:
    """Bytecode, for so long."""
    turns, end = 0, time.perf_counter() + TASK_S
    while time.perf_counter() < end:
        for i in range(20_000):
            turns += i
    return turns


def sort() -> float:
    """NumPy without any loop, for about so long."""
    numbers = np.random.default_rng(1).random(5_000_000)
    numbers.sort()
    return float(numbers[0])


def recorded(work: object, scheduler: str) -> stageprof.Recording:
    tasks = [delayed(work, pure=False)() for _ in range(TASKS)]
    with stageprof.profile() as prof:
        if scheduler == "threads":
            dask.compute(*tasks, scheduler="threads", num_workers=THREADS)
        else:
            dask.compute(*tasks)
    return prof.recording


def on(scheduler: str, work: object) -> stageprof.Recording:
    if scheduler == "threads":
        return recorded(work, scheduler)
    with separate(workers=1, threads=THREADS):
        return recorded(work, scheduler)


@pytest.mark.parametrize("scheduler", ["threads", "distributed"])
def test_bytecode_runs_on_all_threads_and_is_found_to_be_bytecode(scheduler: str) -> None:
    recording = on(scheduler, spin)

    # The threads ran at once. Before that the scheduler and the worker import this file.
    ran = recording.tasks()
    assert ran["stop_s"].max() - ran["start_s"].min() < TASKS * TASK_S * 0.75
    found = {finding.rule: finding for finding in recording.findings()}
    assert float(found["python-bound"].evidence["share_of_tasks"]) > 0.8
    assert "More threads do not help" not in found["python-bound"].fix.text
    assert "gil-contention" not in found
    assert "local-scheduler-choice" not in found


@pytest.mark.parametrize("scheduler", ["threads", "distributed"])
def test_compiled_work_is_not_taken_for_bytecode(scheduler: str) -> None:
    rules = [finding.rule for finding in on(scheduler, sort).findings()]
    assert "python-bound" not in rules


def test_it_says_that_there_is_none_and_nothing_is_missing() -> None:
    recording = on("distributed", spin)

    assert recording.summary.gil == "none: this Python runs without one"
    assert all("without a GIL" in said for said in recording.timeline.gil.sources.values())
    assert recording.gil().empty
    coverage = recording.coverage()
    assert coverage["unmeasured"] == []
    assert coverage["disabled"] == []
    assert recording.stages()["wall_s"].sum() == pytest.approx(recording.wall)
