"""Workers that go in good order tell everything before they do."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from distributed import Client

import clusters
import remains
import stageprof
from reliability.accounts import BUSY_S, closed, inc, processes, right
from stageprof_runtime.shipper import PERIOD_S

pytestmark = pytest.mark.cluster

Exit = Callable[[Client, str], None]


def _close(dask_worker: Any) -> None:
    dask_worker.loop.add_callback(dask_worker.close)


def _sessions(dask_scheduler: Any) -> list[str]:
    return [name for name in dask_scheduler.worker_plugins if name.startswith("stageprof")]


def retire(client: Client, worker: str) -> None:
    """The scheduler moves its results away first."""
    client.retire_workers([worker])


def close(client: Client, worker: str) -> None:
    """From within."""
    client.run(_close, workers=[worker])


def unregister(client: Client, worker: str) -> None:
    """Somebody takes our plugin away from all workers."""
    (session,) = client.run_on_scheduler(_sessions)
    client.unregister_worker_plugin(session)


def interrupt(client: Client, worker: str) -> None:
    """What a terminal sends to `dask worker`: to the nanny, which ends its worker."""
    os.kill(client.run(os.getppid, workers=[worker])[worker], signal.SIGINT)


def terminate(client: Client, worker: str) -> None:
    """What a batch system or a pod's eviction sends."""
    os.kill(client.run(os.getppid, workers=[worker])[worker], signal.SIGTERM)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A cluster of one worker, which stays."""
    with clusters.separate(1) as client:
        yield client


def left(client: Client, worker: str) -> bool:
    return worker not in client.scheduler_info(n_workers=-1)["workers"]


def ended(process: int) -> bool:
    """Whether a process has, though nobody may have asked yet how."""
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def busy_to_the_end(client: Client, worker: str) -> None:
    """Tasks on a worker, of which it cannot have told when the last has ended."""
    futures = client.map(inc, range(50), pure=False, workers=[worker])
    assert client.gather(futures) == right(50)


WAYS: dict[str, Exit] = {
    "retire": retire,
    "close": close,
    "unregister": unregister,
    "SIGINT": interrupt,
    "SIGTERM": terminate,
}


@pytest.mark.nightly
@pytest.mark.parametrize("way", WAYS)
def test_who_goes_in_good_order_loses_nothing(way: str, client: Client) -> None:
    """F4: retired, closed, our plugin unregistered, SIGINT, SIGTERM: 0 events lost."""
    (stays,) = client.scheduler_info(n_workers=-1)["workers"]
    line = ("worker", clusters.scheduler_of(client), "--nthreads", "1", "--no-dashboard")
    with clusters.process(*line):
        client.wait_for_workers(2, timeout=30)
        (worker,) = client.scheduler_info(n_workers=-1)["workers"].keys() - {stays}
        with stageprof.profile() as prof:
            busy_to_the_end(client, worker)
            WAYS[way](client, worker)
            clusters.soon(lambda: way == "unregister" or left(client, worker))
            assert client.gather(client.map(inc, range(30), pure=False)) == right(30)
    clusters.soon(lambda: remains.everywhere(client) == [], 10)
    if way != "unregister":  # which left nobody to tell of the last thirty
        closed(prof.recording)
    workers = prof.recording.workers().set_index("worker")
    assert workers.loc[worker, "tasks"] >= 50
    seen = prof.recording.timeline.runs["seen"][:50]
    assert seen.all()
    assert prof.recording.coverage()["tails_lost"] == {}


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["scale", "restart"])
def test_who_is_no_longer_wanted_loses_nothing(way: str) -> None:
    """F4: scaled down, restarted: 0 events lost, and what comes after is recorded, too."""
    with clusters.local(2) as client:
        before = processes(client)
        with stageprof.profile() as prof:
            for worker in before:
                busy_to_the_end(client, worker)
            if way == "scale":
                assert client.cluster is not None
                client.cluster.scale(1)
                clusters.soon(lambda: len(processes(client)) == 1)
            else:
                client.restart()
                clusters.soon(lambda: len(processes(client).keys() - before.keys()) == 2)
            assert client.gather(client.map(inc, range(30), pure=False)) == right(30)
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    closed(prof.recording)
    workers = prof.recording.workers()
    assert prof.recording.coverage()["tails_lost"] == {}
    assert int(workers["tasks"].sum()) == 130
    assert workers["instrumented"].all()


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_who_is_ended_by_a_signal_leaves_its_last_to_a_neighbour(
    number: signal.Signals, client: Client
) -> None:
    """F4: signals to a process without a nanny, whose Dask closes the stream first: 0 lost."""
    (stays,) = client.scheduler_info(n_workers=-1)["workers"]
    with clusters.worker(clusters.scheduler_of(client)):
        client.wait_for_workers(2, timeout=30)
        (worker,) = client.scheduler_info(n_workers=-1)["workers"].keys() - {stays}
        with stageprof.profile() as prof:
            busy_to_the_end(client, worker)
            os.kill(processes(client)[worker], number)
            clusters.soon(lambda: left(client, worker))
            assert client.gather(client.map(inc, range(30), pure=False)) == right(30)
    closed(prof.recording)
    assert prof.recording.coverage()["tails_lost"] == {}


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_who_is_ended_by_a_signal_leaves_its_last_to_the_client_of_its_host(
    number: signal.Signals,
) -> None:
    """F4: the same where no other worker is there: 0 lost."""
    with clusters.separate(1) as client, stageprof.profile() as prof:
        ((worker, process),) = processes(client).items()
        busy_to_the_end(client, worker)
        os.kill(process, number)
        clusters.soon(lambda: left(client, worker))
        clusters.soon(lambda: ended(process))
    closed(prof.recording)
    assert len(prof.recording.tasks()) == 50
    assert prof.recording.timeline.runs["seen"].all()
    assert prof.recording.coverage()["tails_lost"] == {}


@pytest.mark.nightly
def test_a_process_that_is_terminated_under_its_nanny_loses_little_and_it_is_said(
    record_property: Callable[[str, object], None],
) -> None:
    """F4: SIGTERM to the process itself, whose Dask does not hear it: as if it were killed."""
    with clusters.local(2) as client:
        with stageprof.profile() as prof:
            worker, process = next(iter(processes(client).items()))
            busy_to_the_end(client, worker)
            os.kill(process, signal.SIGTERM)
            clusters.soon(lambda: len(processes(client).keys() - {worker}) == 2)
            assert client.gather(client.map(inc, range(30), pure=False)) == right(30)
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    closed(prof.recording)
    tails = prof.recording.coverage()["tails_lost"]
    assert list(tails) == [worker]
    assert tails[worker]["seconds"] < PERIOD_S + BUSY_S
    record_property("F4 SIGTERM", tails[worker])
