"""Computations of several threads at once: each waits for its own."""

from __future__ import annotations

import threading

import dask
import pytest
from dask import delayed

import stageprof


def spin(n: int) -> int:
    return sum(i * i for i in range(n))


@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_what_another_thread_computes_is_not_what_the_caller_waits_for(scheduler: str) -> None:
    over = threading.Event()

    def beside() -> None:
        while not over.is_set():
            delayed(spin)(1_000, dask_key_name="other").compute(scheduler="sync")

    thread = threading.Thread(target=beside)
    with stageprof.profile(gil=False) as prof:
        thread.start()
        for i in range(20):
            mine = [delayed(spin)(20_000, dask_key_name=f"mine-{i}-{j}") for j in range(3)]
            dask.compute(*mine, scheduler=scheduler)
        over.set()
        thread.join()
    tasks, path = prof.recording.tasks(), prof.recording.critical_path()
    assert (tasks["key"] == "other").sum() > 20
    assert not (path["key"] == "other").any()
    assert path["key"].str.startswith("mine").any()
