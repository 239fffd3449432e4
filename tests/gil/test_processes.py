"""What processes in place of threads would give, predicted and then done."""

from __future__ import annotations

import numpy as np
import pytest
from distributed import Client, LocalCluster, wait

import stageprof
from findings.asking import one
from replay.handmade import SCHEDULER, HandMade, ns
from stageprof_collectors.replay.apart import apart, freed, processes
from stageprof_collectors.rules.gil_contention import RULE
from stageprof_runtime.event import MARK


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


def test_workers_that_went_are_no_threads_to_make_processes_of() -> None:
    """A nanny's new worker has another port: of two with four threads there were sixteen."""
    made = HandMade(2, threads=4)
    rows = made.rows_of(SCHEDULER)
    for worker in (10, 11):
        rows.append((MARK, ns(500), "worker left", f"tcp://host:{worker}"))
        rows.append((MARK, ns(510), "worker seen", f"tcp://host:{worker + 10} 4 0 again"))
    recording = made.recording(1000)
    assert len(recording.workers()) == 4
    assert processes(recording, np.zeros(0)).number == 8


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
