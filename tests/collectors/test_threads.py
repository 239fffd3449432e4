"""Computations of several threads at once: each waits for its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from dask import delayed

import stageprof
from stageprof_collectors.storage.store import Store


def spin(n: int) -> int:
    return sum(i * i for i in range(n))


def test_a_row_that_is_lost_costs_the_account_no_more_than_its_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who asked for the runs after it is not known then; the caller is taken to have waited."""
    with stageprof.profile(str(tmp_path / "a.stageprof"), gil=False) as prof:
        chain = delayed(spin)(200_000)
        for _ in range(20):
            chain = delayed(spin)(200_000 + 0 * chain)
        chain.compute(scheduler="threads")
    whole = prof.recording.stages()["wall_s"]
    table = Store.table

    def without_a_row(self: Store, name: str) -> dict[str, Any]:
        rows = table(self, name)
        return {n: np.delete(c, 4) for n, c in rows.items()} if name == "assign" else rows

    monkeypatch.setattr(Store, "table", without_a_row)
    torn = stageprof.open(tmp_path / "a.stageprof").stages()["wall_s"]
    assert torn["execution"] > 0.8 * whole["execution"]


@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_what_another_thread_computes_is_not_what_the_caller_waits_for(scheduler: str) -> None:
    over, computed = threading.Event(), threading.Semaphore(0)

    def beside() -> None:
        while not over.is_set():
            delayed(spin)(1_000, dask_key_name="other").compute(scheduler="sync")
            computed.release()

    thread = threading.Thread(target=beside)
    with stageprof.profile(gil=False) as prof:
        thread.start()
        for i in range(20):
            computed.acquire()
            mine = [delayed(spin)(20_000, dask_key_name=f"mine-{i}-{j}") for j in range(3)]
            dask.compute(*mine, scheduler=scheduler)
        over.set()
        thread.join()
    tasks, path = prof.recording.tasks(), prof.recording.critical_path()
    assert (tasks["key"] == "other").sum() >= 20
    assert not (path["key"] == "other").any()
    assert path["key"].str.startswith("mine").any()
