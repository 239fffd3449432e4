"""What processes in place of threads would give, predicted and then done."""

from __future__ import annotations

import pytest
from distributed import Client, LocalCluster, wait

import stageprof
from findings.asking import one
from stageprof_collectors.replay.apart import apart, freed
from stageprof_collectors.rules.gil_contention import RULE


def parsed(number: int) -> int:
    """The same work wherever it runs."""
    total = 0
    for i in range(400_000):
        total += (i ^ number) & 7
    return total


def run(workers: int, threads: int) -> stageprof.Recording:
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=threads, dashboard_address=":0",
        worker_dashboard_address=None,
    )  # fmt: skip
    with cluster, Client(cluster) as client:
        wait(client.map(parsed, range(-4, 0)))
        with stageprof.profile() as prof:
            client.gather(client.map(parsed, range(60)))
    return prof.recording


@pytest.mark.nightly
@pytest.mark.alone
def test_the_wall_time_with_processes_is_predicted_within_15_percent() -> None:
    """B24: of two threads that want one GIL all the time, on two processors."""
    before = run(1, 2)
    gil = before.timeline.gil
    assert gil.shares is not None
    low, high = before.replay.wall(apart(before, freed(before, gil.shares)))
    after = run(2, 1).wall
    assert (low + high) / 2 == pytest.approx(after, rel=0.15)
    found = one(RULE, before)
    assert found.saving_s[0] <= before.wall - after + 0.15 * after
    assert found.saving_s[1] >= before.wall - after - 0.15 * after
