"""Dask's own chaos: workers that die again and again while they compute."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import dask.array as da
import pytest
from distributed import Client, LocalCluster
from distributed.chaos import KillWorker

import clusters
import remains
import stageprof
from reliability.accounts import closed

pytestmark = [pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(300)]

#: Seconds that the chaos lasts; the last computation ends after it.
CHAOS_S = 60
WORKERS = 3


def rechunked(client: Client) -> float:
    """A computation in which everybody needs something of everybody, on workers that are replaced.

    A worker that calls `sys.exit`, or dies as it begins, takes its nanny along: who wants as many
    as before asks the cluster for them. Dask's other way to rechunk, peer to peer, may give up
    when a worker dies in it.
    """
    made = da.ones((1_000, 1_000), chunks=(50, 1_000))
    turned = made.rechunk((1_000, 50), method="tasks") + 1
    future = client.compute(turned.rechunk((50, 1_000), method="tasks").sum(), retries=100)
    while True:
        assert client.cluster is not None
        client.cluster.scale(WORKERS)
        with suppress(TimeoutError):
            return float(future.result(timeout=1))


def calmed(client: Client) -> None:
    """No more chaos: all workers go, those with a timer still running among them."""
    with suppress(OSError, KeyError):  # a worker that dies, or comes, just now
        client.unregister_worker_plugin("chaos")
    assert client.cluster is not None
    client.cluster.scale(0)
    clusters.soon(lambda: client.scheduler_info(n_workers=-1)["workers"] == {}, 60)


# Of a future that is cancelled while it is waited for `distributed.utils.sync` returns nothing.
@pytest.mark.flaky(reruns=1, only_rerun=["UnboundLocalError"])
@pytest.mark.parametrize("how", ["sys.exit", "segfault", "graceful"])
def test_results_are_right_and_the_accounts_are_closed(
    how: Literal["sys.exit", "segfault", "graceful"], record_property: Callable[[str, object], None]
) -> None:
    """F12: `KillWorker`, a worker's life five seconds on average, for a minute."""
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0", silence_logs=50
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
            calmed(client)
            results.append(rechunked(client))
        clusters.soon(lambda: remains.everywhere(client) == [], 20)
    recording = prof.recording
    closed(recording)
    coverage, died = recording.coverage(), int(recording.workers()["left"].sum())
    tails, unseen = coverage["tails_lost"], coverage["not_instrumented"]
    record_property("F12 computations, workers that died", (len(results), died))
    record_property("F12 tails, workers that nothing was heard of", (tails, unseen))
    assert set(results) == {2_000_000.0}
    assert died > WORKERS
    # One that dies before its first batch, a tenth of a second after it began, has told nothing.
    assert set(unseen.values()) <= {"sent nothing"}
    assert len(unseen) < died
