"""Workers that join under load: they are observed from the start, and hardly later than others."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from distributed import WorkerPlugin

import clusters
import stageprof
from reliability.accounts import inc, nap, right

pytestmark = [pytest.mark.cluster, pytest.mark.nightly, pytest.mark.alone]

#: Tasks that keep the cluster busy while it grows.
TASKS = 600


class Stamp(WorkerPlugin):
    """Notes when a worker came to it: what workers take in between two stamps is for ours."""

    def __init__(self, name: str) -> None:
        self.name = name

    def setup(self, worker: Any) -> None:
        worker.stamps = getattr(worker, "stamps", {}) | {self.name: time.perf_counter()}


def _took(dask_worker: Any) -> float:
    stamps = dask_worker.stamps
    return float(stamps["after"] - stamps["before"])


def test_a_cluster_that_grows_under_load_waits_for_nothing(
    record_property: Callable[[str, object], None],
) -> None:
    """F9: from 1 worker to 4 while it computes: registered <= 1 s, joined <= 100 ms later."""
    with clusters.local(1, 2) as client:
        client.register_plugin(Stamp("before"))
        futures = client.map(nap, range(TASKS), seconds=0.03, pure=False)
        started = time.perf_counter()
        prof = stageprof.profile().start()
        registered = time.perf_counter() - started
        client.register_plugin(Stamp("after"))
        assert client.cluster is not None
        client.cluster.scale(4)
        client.wait_for_workers(4, timeout=60)
        for worker in client.scheduler_info(n_workers=-1)["workers"]:
            assert client.submit(inc, 1, workers=[worker], pure=False).result(timeout=5) == 2
        added = client.run(_took)
        assert client.gather(futures) == right(TASKS)
        recording = prof.stop()
    record_property("F9", {"registered_s": registered, "added_s": sorted(added.values())})
    workers = recording.workers()
    assert workers["instrumented"].tolist() == [True] * 4
    # Some had been done when the session began.
    assert TASKS - 30 <= int(workers["tasks"].sum()) <= TASKS + 4
    assert workers["tasks"].min() > 0
    assert registered <= 1
    # The one that was there got the three plugins at different times.
    assert sorted(added.values())[-2] <= 0.1
