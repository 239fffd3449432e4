"""Tasks that a worker hands to an executor of the user's, where no probe sees them run."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import dask
import pytest
from dask import delayed
from distributed import Client, LocalCluster

import planted
from truth import appears_in, read_back


def test_tasks_in_processes_of_a_workers_own_are_execution(tmp_path: Path) -> None:
    """They took what Dask says, and ended when the worker heard of it."""

    def program(log: str, delay: float) -> None:
        with dask.annotate(executor="pool"):
            works = [delayed(planted.work)(log, delay, i) for i in range(4)]
        dask.compute(works, optimize_graph=False)

    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        pool.submit(planted.identity, 1).result()  # it is there before anything is timed
        beside = LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            executor={"pool": pool},
        )
        with beside as cluster, Client(cluster):
            reading = read_back(program, 0.3, tmp_path)
    appears_in(reading, {"execution": reading.seconds("work")})
    tasks = reading.recording.tasks()
    assert len(tasks) == 4
    assert tasks["duration_s"].sum() == pytest.approx(reading.seconds("work"), rel=0.05, abs=0.05)
