"""Whichever client a cluster is recorded through: it may leave, fail, or be called otherwise."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

import clusters
import remains
import stageprof
from stageprof_runtime import bootstrap, membership
from stageprof_runtime.event import NO_CAUSE
from stageprof_runtime.guard import Watches
from stageprof_runtime.memberships import Memberships
from stageprof_runtime.probes import gil
from stageprof_runtime.ring import Ring
from stageprof_runtime.scheduler_plugin import SchedulerProbe

pytestmark = pytest.mark.cluster


def inc(x: int) -> int:
    return x + 1


def computed(client: Client, n: int) -> None:
    assert client.gather(client.map(inc, range(n), pure=False)) == list(range(1, n + 1))


def nothing_is_left_on(cluster: LocalCluster) -> None:
    clusters.soon(lambda: not remains.of_scheduler(cluster.scheduler), 15)


@pytest.fixture
def scheduler_as_before() -> Iterator[None]:
    """Two clients that close in the order they came leave their scheduler to Dask's config."""
    with dask.config.set(scheduler=None):
        yield


@pytest.mark.usefixtures("scheduler_as_before")
def test_a_client_closes_at_once_though_another_one_goes_on_with_the_cluster() -> None:
    """Each lives on a loop of its own; neither is the active client when the region begins."""
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        with stageprof.profile() as prof:
            one = Client(cluster.scheduler_address)
            other = Client(cluster.scheduler_address)
            computed(one, 10)
            began = time.monotonic()
            one.close(timeout=20)
            assert one.status == "closed"
            assert time.monotonic() - began < 15
            computed(other, 20)
            other.close()
        nothing_is_left_on(cluster)
    assert len(prof.recording.tasks()) == 30
    assert set(prof.recording.tasks()["status"]) == {"memory"}
    assert prof.recording.timeline.marks("cluster lost") == []


@pytest.mark.usefixtures("scheduler_as_before")
def test_a_scheduler_under_two_addresses_is_one_cluster() -> None:
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        port = cluster.scheduler_address.rpartition(":")[2]
        prof = stageprof.profile().start()
        one, other = Client(f"127.0.0.1:{port}"), Client(f"localhost:{port}")
        computed(one, 10)
        computed(other, 20)
        began = time.monotonic()
        prof.stop()
        assert time.monotonic() - began < 15
        nothing_is_left_on(cluster)
        one.close()
        other.close()
    assert len(prof.recording.tasks()) == 30
    assert prof.recording.timeline.marks("cluster lost") == []


def test_a_cluster_that_could_not_be_joined_is_joined_through_the_next_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused: list[str] = []

    def once(role: str, *args: Any) -> Any:
        if not refused:
            refused.append(role)
            raise OSError("no room")
        return bootstrap.carry(role, *args)

    monkeypatch.setattr(membership, "carry", once)
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        with stageprof.profile() as prof, Client(address) as one, Client(address) as two:
            computed(one, 3)
            computed(two, 4)
        nothing_is_left_on(cluster)
    assert len(prof.recording.timeline.marks("cluster not joined")) == 1
    assert len(prof.recording.timeline.marks("cluster joined")) == 1
    assert len(prof.recording.tasks()) == 7


def test_a_session_that_begins_again_while_its_old_end_takes_long_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As of an owner that lost its connection and came back: a probe of the same name."""
    ending = gil.ended

    async def slowly() -> None:
        await asyncio.sleep(1.0)
        await ending()

    with clusters.local(1) as client:
        monkeypatch.setattr(gil, "ended", slowly)
        with stageprof.profile() as prof:
            computed(client, 3)
            session: Any = prof._session
            (member,) = session._clusters._joined.values()
            cluster: Any = client.cluster

            async def again() -> None:
                probe = cluster.scheduler.plugins[session.name]
                old = asyncio.ensure_future(probe.end(owner=False))
                await asyncio.sleep(0)  # it has begun to end
                await member.join(watch_gil=True)
                await old

            client.sync(again)
            computed(client, 40)
        clusters.soon(lambda: remains.everywhere(client) == [], 15)
    assert prof.recording.timeline.marks("cluster lost") == []
    assert len(prof.recording.tasks()) >= 40


class Loop:
    def __init__(self, *, ended: bool) -> None:
        self.asked = 0
        self.ended = ended
        self.asyncio_loop = self

    def call_soon_threadsafe(self, *_: Any) -> None:
        if self.ended:
            raise RuntimeError("Event loop is closed")
        self.asked += 1


class Lonely:
    """A client without a cluster."""

    id, status, scheduler_comm = "Client-1", "running", None

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self._stream_handlers: dict[str, Any] = {}
        self.scheduler = self
        self.address = "tcp://127.0.0.1:1"


def test_a_loop_that_has_ended_stops_nobody_from_being_asked() -> None:
    watches = Watches("client")
    memberships = Memberships("session", Ring(), lambda _: None, watches, {})
    loops = [Loop(ended=False), Loop(ended=True), Loop(ended=False)]
    joined: dict[Any, Any] = {Lonely(loop): None for loop in loops}
    memberships._joined = joined
    memberships.ask_loops()
    assert [loop.asked for loop in loops] == [1, 0, 1]


@pytest.mark.parametrize(("guest", "told"), [(True, 0), (False, 1)])
def test_a_cluster_is_lost_with_the_client_that_it_is_recorded_through(
    guest: bool, told: int
) -> None:
    ring = Ring()
    client = Lonely(Loop(ended=False))
    member = membership.Membership(client, "session", ring, lambda _: None, Watches("client"))
    if guest:
        member.visit()
    member.abandon("it is gone")
    names = [row[2] for row in ring.take()]
    assert names.count("cluster lost") == told


FORKS = """
import os, sys, stageprof
from distributed import Client
address, inc = sys.argv[1], (1).__add__
reading, writing = os.pipe()
with stageprof.profile() as prof:
    child = os.fork()
    if child == 0:
        os.read(reading, 1)
        with stageprof.profile(), Client(address) as client:
            assert client.submit(inc, 1).result() == 2
        os._exit(0)
    with Client(address) as client:
        client.gather(client.map(inc, range(10), pure=False))
        os.write(writing, b".")
        assert os.waitpid(child, 0)[1] == 0
        client.gather(client.map(inc, range(20), pure=False))
print(len(prof.recording.tasks()), prof.recording.timeline.marks("cluster lost"), flush=True)
"""


def test_a_forked_childs_recording_takes_nothing_of_its_parents() -> None:
    """The child was made before the parent's session joined the cluster."""
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        line = [sys.executable, "-c", FORKS, cluster.scheduler_address]
        done = subprocess.run(line, capture_output=True, text=True, timeout=100, check=False)
        assert done.stdout == "31 []\n", done.stderr
        nothing_is_left_on(cluster)


def until_told(begun: str, go: str, done: str) -> None:
    """A task that goes on until somebody says so."""
    Path(begun).touch()
    while not Path(go).exists():
        time.sleep(0.01)
    Path(done).touch()


def test_a_running_task_that_is_cancelled_is_one_run_of_its_whole_length(tmp_path: Path) -> None:
    begun, go, done = (tmp_path / name for name in ("begun", "go", "done"))
    with clusters.local(1) as client, stageprof.profile() as prof:
        future = client.submit(until_told, str(begun), str(go), str(done), pure=False)
        clusters.soon(begun.exists)
        future.cancel()
        clusters.soon(lambda: all(client.run(_cancelled).values()))
        go.touch()
        clusters.soon(done.exists)
        assert client.submit(inc, 1).result() == 2  # on the thread that is free now
    store, runs = prof.recording.store, prof.recording.timeline.runs
    assert store.rows("run") == 2
    assert (runs["thread"] != 0).all()


def _cancelled(dask_worker: Any) -> bool:
    return any(task.state == "cancelled" for task in dask_worker.state.tasks.values())


def test_a_graph_that_was_on_its_way_in_when_the_session_began_is_no_run() -> None:
    """Runs are numbered from 0."""
    probe = SchedulerProbe("session", "Client-1", b"")
    probe._counts = [0, 0, 0]
    new = SimpleNamespace(state="released")
    scheduler: Any = SimpleNamespace(tasks={"a": new}, queued=[], unrunnable={}, workers={})
    probe._cause = 5
    probe.update_graph(scheduler, tasks=["a"], keys=["a"])
    assert probe._cause == NO_CAUSE
    assert probe._counts == [1, 0, 0]
    assert probe.watches["update_graph"].failures == 0
