"""Of each stage, what of it was waiting: a delay that sleeps is, one that computes is not."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import dask
import pytest
from distributed import Client

import planted
from stageprof_collectors.comparison.measured import measure
from stageprof_runtime.stage import Stage
from truth import read_back, record

DELAY = 0.4


def optimizer(log: str, delay: float) -> None:
    dask.compute(planted.SlowGraph(log, delay))


def pickling(log: str, delay: float) -> None:
    """At four hops: the client's, two of the scheduler's, the worker's."""
    dask.delayed(planted.ignore)(planted.Slow(log, delay, delay)).compute()


def task(log: str, delay: float) -> None:
    dask.delayed(planted.timed_sleep)(log, "task", delay).compute()


@pytest.mark.parametrize(
    ("program", "stage"),
    [
        (optimizer, Stage.OPTIMIZATION),
        (pickling, Stage.SERIALIZATION),
        (task, Stage.EXECUTION),
    ],
)
def test_what_sleeps_is_waiting(
    cluster: Client, program: Callable[[str, float], None], stage: Stage, tmp_path: Path
) -> None:
    reading = read_back(program, DELAY, tmp_path)
    planted_s = math.fsum(each["seconds"] for each in reading.truth)
    found = measure(reading.recording)
    assert found.waits[stage] == pytest.approx(planted_s, rel=0.1, abs=0.05)
    others = [s for other, s in found.waits.items() if other not in (stage, Stage.OUTSIDE)]
    assert max(others) < 0.25 * DELAY


def spin(seconds: float) -> None:
    used = time.thread_time()
    while time.thread_time() < used + seconds:
        pass


def test_what_computes_is_not_waiting(cluster: Client) -> None:
    found = measure(record(lambda: dask.delayed(spin)(DELAY).compute()))
    assert found.stages[Stage.EXECUTION] >= DELAY
    assert found.waits[Stage.EXECUTION] < 0.5 * found.stages[Stage.EXECUTION]
