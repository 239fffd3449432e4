"""Dask's own chaos: workers that die again and again while they compute."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import dask.array as da
import pytest
from distributed import Client, LocalCluster
from distributed.chaos import KillWorker

import clusters
import remains
import stageprof
from reliability.accounts import closed

pytestmark = [pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(200)]

#: Seconds that the chaos lasts; the last computation ends after it.
CHAOS_S = 60


def rechunked(client: Client) -> float:
    """A computation in which everybody needs something of everybody."""
    made = da.ones((1_000, 1_000), chunks=(50, 1_000))
    other = (made.rechunk((1_000, 50)) + 1).rechunk((50, 1_000)).sum()
    return float(client.compute(other, retries=100).result(timeout=120))


@pytest.mark.parametrize("how", ["sys.exit", "segfault", "graceful"])
def test_results_are_right_and_the_accounts_are_closed(
    how: Literal["sys.exit", "segfault", "graceful"], record_property: Callable[[str, object], None]
) -> None:
    """F12: `KillWorker`, a worker's life five seconds on average, for a minute."""
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        # Nobody is blamed for what a worker's death does to the tasks that it had.
        client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 10**6)
        )
        with stageprof.profile() as prof:
            client.register_plugin(KillWorker(delay="5 s", mode=how), name="chaos")
            until, results = time.monotonic() + CHAOS_S, []
            while time.monotonic() < until:
                results.append(rechunked(client))
            client.unregister_worker_plugin("chaos")
            client.restart()  # those that still have a timer are replaced
            results.append(rechunked(client))
        clusters.soon(lambda: remains.everywhere(client) == [], 20)
    recording = prof.recording
    closed(recording)
    tails, workers = recording.coverage()["tails_lost"], recording.workers()
    died = int(workers["left"].sum())
    record_property("F12 computations, workers that died, tails", (len(results), died, tails))
    assert set(results) == {2_000_000.0}
    assert died > 3
    assert workers[workers["tasks"] > 0]["instrumented"].all()
