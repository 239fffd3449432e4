"""The same load reads the same, whatever the other workers do: no mean over processes."""

from __future__ import annotations

import os

import pytest
from distributed import Client, LocalCluster

import holding
import stageprof


@pytest.mark.parametrize("workers", [1, 3])
def test_each_worker_has_its_own_number(workers: int) -> None:
    """Dask's dashboard shows a mean: one busy worker of three would read as a third."""
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=2, dashboard_address=":0",
        worker_dashboard_address=None,
    )  # fmt: skip
    with cluster, Client(cluster) as client:
        busy = next(iter(client.scheduler_info()["workers"]))
        with stageprof.profile() as prof:
            client.submit(holding.in_c, 0.04, 40, 0.06, workers=[busy]).result()
    samples = prof.recording.samples()
    read = samples[(samples["name"] == "gil.contention") & (samples["role"] == "worker")]
    means = read[read["t_s"].between(0.6, 4)].groupby("place")["value"].mean()
    assert means[busy] == pytest.approx(0.4, abs=0.06)
    # Idle ones hold it for little, but for longer where no processor is free to go on with.
    assert (means.drop(busy) < means[busy] / 2).all()
    assert len(means) == workers


def test_a_process_says_what_its_numbers_come_from() -> None:
    cluster = LocalCluster(n_workers=1, dashboard_address=":0", worker_dashboard_address=None)
    with cluster, Client(cluster) as client, stageprof.profile() as prof:
        client.submit(os.getpid, pure=False).result()
    assert set(prof.recording.timeline.gil.sources.values()) == {"watch"}
