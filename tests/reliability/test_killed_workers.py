"""Workers that are killed at any time: right results, little lost, and that is said."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import dask
import pytest
from distributed import Client

import clusters
import remains
import stageprof
from reliability.accounts import BUSY_S, closed, inc, nap, processes, right, untold
from stageprof_runtime import tail
from stageprof_runtime.clock import now_ns
from stageprof_runtime.shipper import PERIOD_S

pytestmark = [
    pytest.mark.cluster,
    # Of Dask's own: a LocalCluster may hear that a worker has gone of which it had heard nothing.
    pytest.mark.flaky(reruns=2, only_rerun=["KeyError"]),
]

#: Fifteen seconds after a worker has died a LocalCluster closes its nanny for good, if no worker of
#: that name is there just then: not even because the next one has been killed, too.
KEPT = {"distributed.deploy.lost-worker-timeout": "1 hour"}


def killed_while_it_computes(client: Client, chance: random.Random, n: int) -> tuple[str, int]:
    """A worker that was killed at a random time of a computation, and when."""
    worker, process = chance.choice(sorted(processes(client).items()))
    when: list[int] = []

    def kill() -> None:
        when.append(now_ns())
        os.kill(process, signal.SIGKILL)

    timer = threading.Timer(chance.uniform(0, 0.6), kill)
    futures = client.map(nap, range(n), pure=False)
    timer.start()
    assert client.gather(futures) == right(n)
    timer.join()
    clusters.soon(lambda: len(processes(client).keys() - {worker}) == 2)
    return worker, when[0]


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.nightly)])
def test_computations_survive_and_at_most_a_flush_of_each_worker_is_lost(
    kills: int, record_property: Callable[[str, object], None], tmp_path: Path
) -> None:
    """F3: SIGKILL of a worker at random times, as often as there are computations.

    All results are right. Of each worker that died what it did in its last tenth of a second may
    be missing, which the recording says; the worker in its place is observed, and sends the rest.
    """
    chance = random.Random(3)
    with dask.config.set(KEPT), clusters.local(2) as client:
        with stageprof.profile(tmp_path / "run.stageprof") as prof:
            died = dict(killed_while_it_computes(client, chance, 100) for _ in range(kills))
            assert client.gather(client.map(nap, range(40), pure=False)) == right(40)
            living = processes(client)
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    recording = prof.recording
    closed(recording)
    tails, runs = recording.coverage()["tails_lost"], recording.timeline.runs
    workers = recording.workers().set_index("worker")
    assert len(died) == kills
    assert set(tails) == died.keys()
    assert workers.loc[[*living], "instrumented"].all()
    assert workers.loc[[*living], "tasks"].min() > 0
    assert max(tail["seconds"] for tail in tails.values()) < PERIOD_S + BUSY_S
    late = runs["finished"][(runs["finished"] > 0) & (runs["status"] == 0) & (runs["seen"] == 0)]
    early = [min(abs(int(t) - when) for when in died.values()) / 1e9 for t in late]
    assert max(early, default=0) < PERIOD_S + BUSY_S
    if kills > 10:  # half of them would be told of half a second less without their tails
        assert median(tail["seconds"] for tail in tails.values()) < 2 * PERIOD_S
    record_property("F3 silent seconds", sorted(tail["seconds"] for tail in tails.values()))
    record_property("F3 tasks lost", [tail["tasks"] for tail in tails.values()])
    record_property("F3 seconds of the earliest of them before the kill", max(early, default=0))


def _only_at_the_end(dask_worker: Any) -> None:
    """Nothing more is sent until it is asked for."""
    for plugin in _observers(dask_worker):
        plugin._shipper.ready = lambda: False


def _kept(dask_worker: Any) -> bool:
    """Whether all that it has done is where a kill does not reach it, and not on its way there."""
    return all(map(_keeps_all, _observers(dask_worker)))


def _keeps_all(plugin: Any) -> bool:
    with plugin._shipper._packing:  # held from when rows are taken until they are written
        return not len(plugin._ring) and bool(plugin._shipper._held)


def _observers(dask_worker: Any) -> list[Any]:
    return [p for name, p in dask_worker.plugins.items() if name.startswith("stageprof")]


@pytest.mark.parametrize("heir", ["the next one of its nanny", "its neighbour"])
def test_what_was_kept_of_a_killed_worker_is_sent_by_another_one_of_its_host(heir: str) -> None:
    """F3: all that it did until a tenth of a second before, though it had sent nothing of it."""
    with dask.config.set(KEPT), clusters.local(1 if heir.startswith("the") else 2) as client:
        worker, process = min(processes(client).items())
        with stageprof.profile() as prof:
            client.run(_only_at_the_end, workers=[worker])
            done = client.map(
                inc, range(50), pure=False, workers=[worker], allow_other_workers=True
            )
            assert client.gather(done) == right(50)
            clusters.soon(lambda: client.run(_kept, workers=[worker])[worker])
            os.kill(process, signal.SIGKILL)
            clusters.soon(lambda: worker not in processes(client))
            client.wait_for_workers(1)
            assert client.gather(client.map(inc, range(50), pure=False)) == right(50)
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    closed(prof.recording)
    assert untold(prof.recording) == Counter()
    assert worker in set(prof.recording.tasks()["worker"])
    assert prof.recording.coverage()["tails_lost"][worker]["tasks"] == 0


def _ends_after_it_was_stuck(dask_worker: Any) -> None:
    """Its loop is told to stand still until several batches wait for it, and ends the process."""

    def end() -> None:
        (plugin,) = _observers(dask_worker)
        until = plugin._shipper._seq + 3
        clusters.soon(lambda: plugin._shipper._seq >= until)
        sys.exit(0)

    # Not before this call is over: its answer would have the loop go on for longer.
    dask_worker.loop.asyncio_loop.call_later(0.5, end)


def test_a_worker_that_ends_with_batches_on_their_way_loses_none_of_them() -> None:
    """F3, F12: what is being written as `sys.exit` ends the loop is cancelled with it."""
    with clusters.local(2) as client:
        worker = min(processes(client))
        with stageprof.profile() as prof:
            assert client.gather(client.map(inc, range(50), pure=False)) == right(50)
            client.run(_ends_after_it_was_stuck, workers=[worker])
            clusters.soon(lambda: worker not in processes(client))
            assert client.gather(client.map(inc, range(50), pure=False)) == right(50)
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    closed(prof.recording)
    assert untold(prof.recording) == Counter()
    assert prof.recording.coverage()["batches_lost"] == 0


def test_what_was_kept_of_the_only_worker_of_the_client_s_host_is_taken_by_the_client() -> None:
    """F3: no nanny starts another one, and the run ends without it."""
    with clusters.separate(1) as client, stageprof.profile() as prof:
        ((worker, process),) = processes(client).items()
        client.run(_only_at_the_end)
        done = client.map(inc, range(50), pure=False)
        assert client.gather(done) == right(50)
        clusters.soon(lambda: client.run(_kept)[worker])
        os.kill(process, signal.SIGKILL)
        clusters.soon(lambda: worker not in processes(client))
        session: Any = prof._session
        folder = Path(tail.folder_of(session.name))
    closed(prof.recording)
    assert untold(prof.recording) == Counter()
    assert prof.recording.coverage()["tails_lost"][worker]["tasks"] == 0
    assert not folder.exists()
