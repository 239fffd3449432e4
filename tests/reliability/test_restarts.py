"""Clusters whose processes come and go on purpose, the scheduler among them."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import dask
import pytest
from distributed import Client, as_completed

import clusters
import remains
import stageprof
from reliability.accounts import BUSY_S, closed, inc, nap, processes, right
from stageprof_runtime.shipper import PERIOD_S

pytestmark = [pytest.mark.cluster, pytest.mark.nightly]

#: Tasks of a twentieth of a second after which no worker comes any more.
PATIENCE = 2_000


def busy_until(client: Client, workers: int) -> int:
    """Keep a cluster busy until it has so many workers; the tasks that this took.

    For each task that ends another comes: a worker that is still on its way when there is less to
    do is called off. Dask may lose count of its workers when one is killed as it closes, and never
    begin another.
    """
    ran = 60
    tasks = as_completed(client.map(nap, range(ran), seconds=0.05, pure=False))
    for task in tasks:
        assert task.result() in right(60)
        assert ran < PATIENCE, "no worker came"
        if len(processes(client)) < workers:
            tasks.add(client.submit(nap, 0, seconds=0.05, pure=False))
            ran += 1
    return ran


@pytest.mark.flaky(reruns=2, only_rerun=["no worker came"])
def test_a_cluster_that_grows_and_shrinks_by_itself_runs_on_and_is_told(
    record_property: Callable[[str, object], None],
) -> None:
    """Adaptive scaling: from one worker to two under load and back, twice.

    A worker that is called off may be killed: Dask's scheduler removes it, and its nanny stops to
    listen before the worker has told it that it closes. What it had not told by then is said.
    """
    ran = 0
    with clusters.local(1) as client:
        assert client.cluster is not None
        client.cluster.adapt(minimum=1, maximum=2, interval="100ms", target_duration="1s")
        with stageprof.profile() as prof:
            for _ in range(2):
                ran += busy_until(client, 2)
                assert client.gather(client.map(nap, range(60), pure=False)) == right(60)
                clusters.soon(lambda: len(processes(client)) == 1)
                ran += 60
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    closed(prof.recording)
    workers = prof.recording.workers()
    assert len(workers) >= 3
    assert workers["instrumented"].all()
    assert int(workers["tasks"].sum()) == ran
    tails = prof.recording.coverage()["tails_lost"]
    assert all(tail["seconds"] < PERIOD_S + BUSY_S for tail in tails.values())
    record_property("adaptive, tails", tails)


def has_nothing(client: Client) -> bool:
    """Whether the scheduler knows of no task: who goes then takes no result along."""
    return bool(client.run_on_scheduler(lambda dask_scheduler: not dask_scheduler.tasks))


@pytest.mark.flaky(reruns=2, only_rerun=["Waited for 1 worker"])
def test_workers_that_their_nannies_restart_lose_nothing() -> None:
    """Each is told to end, and another begun in its place.

    On a machine where a process takes long to begin Dask may never begin it, recorded or not.
    """
    with clusters.local(2) as client:
        with stageprof.profile() as prof:
            for _ in range(3):
                assert client.gather(client.map(nap, range(60), pure=False)) == right(60)
                clusters.soon(lambda: has_nothing(client))
                client.restart_workers([next(iter(processes(client)))])
            assert client.gather(client.map(nap, range(60), pure=False)) == right(60)
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    closed(prof.recording)
    workers = prof.recording.workers()
    assert int(workers["left"].sum()) == 3
    assert int(workers["tasks"].sum()) == 240
    assert workers["instrumented"].all()
    assert prof.recording.coverage()["tails_lost"] == {}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_scheduler_that_restarts_ends_what_is_recorded_of_it_and_it_is_said(
    tmp_path: Path,
) -> None:
    """The same client finds the new one, and records it anew."""
    port = free_port()
    line = ("--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    path = tmp_path / "r.stageprof"
    with ExitStack() as stack:
        # Of a client that has connected again Dask leaves this behind, recorded or not.
        stack.enter_context(dask.config.set(scheduler="dask.distributed"))
        first = stack.enter_context(ExitStack())
        address = clusters.address_of(first.enter_context(clusters.process("scheduler", *line)))
        first.enter_context(clusters.worker(address))
        client = stack.enter_context(Client(address, timeout="30s"))
        client.wait_for_workers(1, timeout=30)
        with stageprof.profile(path) as prof:
            assert client.gather(client.map(inc, range(50), pure=False)) == right(50)
            first.close()
            second = stack.enter_context(clusters.process("scheduler", *line))
            clusters.address_of(second)
            stack.enter_context(clusters.worker(address))
            clusters.soon(lambda: client.status == "running")
            client.wait_for_workers(1, timeout=30)
            assert client.gather(client.map(inc, range(30), pure=False)) == right(30)
        assert remains.everywhere(client) == []
        assert remains.of_client(client) == []
        with stageprof.profile() as again:
            assert client.gather(client.map(inc, range(20), pure=False)) == right(20)
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
        client.close()
        second.terminate()
        assert second.stderr is not None
        assert "No handler" not in second.stderr.read()  # nobody asked it for the first one's
    recording = stageprof.open(path)
    assert recording.complete
    assert len(recording.tasks()) >= 50
    (problem,) = prof.recording.coverage()["problems"]
    assert problem.startswith("cluster lost: the client lost its connection to the scheduler")
    closed(again.recording)
    assert int(again.recording.workers()["tasks"].sum()) == 20
