"""Several clients, and clients of loops: a cluster is recorded once, and let go of in the end."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, ClassVar

import pytest
from distributed import Client, LocalCluster, get_worker, secede

import clusters
import remains
import stageprof
from stageprof_runtime import process
from stageprof_runtime.guard import Watches
from stageprof_runtime.membership import Membership
from stageprof_runtime.memberships import Memberships
from stageprof_runtime.probes import clients
from stageprof_runtime.ring import Ring
from stageprof_runtime.session import Session
from stageprof_runtime.shipper import Shipper

pytestmark = pytest.mark.cluster


def inc(x: int) -> int:
    return x + 1


def where(_: int) -> str:
    return str(get_worker().address)


def seceded(x: int) -> int:
    secede()
    return x


def computed(client: Client, n: int) -> None:
    assert client.gather(client.map(inc, range(n), pure=False)) == list(range(1, n + 1))


def clean(client: Client) -> None:
    clusters.soon(lambda: remains.everywhere(client) + remains.of_client(client) == [], 15)


@pytest.mark.parametrize("leaves", ["first", "second"])
def test_tasks_of_two_clients_of_one_cluster_are_recorded_whoever_leaves(
    leaves: str, client: Client, standing: str
) -> None:
    with stageprof.profile() as prof:
        one, other = Client(standing), Client(standing)
        computed(one, 10)
        computed(other, 20)
        left, stays = (one, other) if leaves == "first" else (other, one)
        left.close()
        computed(stays, 30)
        stays.close()
    clean(client)
    tasks = prof.recording.tasks()
    assert len(tasks) == 60
    assert set(tasks["status"]) == {"memory"}
    assert prof.recording.timeline.marks("cluster lost") == []


@pytest.mark.parametrize("ends", ["client.shutdown", "cluster.close"])
def test_a_cluster_that_closes_with_results_still_held_is_left_before(ends: str) -> None:
    """Its scheduler was asked for half a minute when it was gone, its workers went unexpectedly."""
    with stageprof.profile() as prof:
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        )
        client = Client(cluster)
        held = client.map(inc, range(10), pure=False)
        assert client.gather(held) == list(range(1, 11))
        closing: dict[str, Callable[[], object]]
        closing = {"client.shutdown": client.shutdown, "cluster.close": cluster.close}
        closing[ends]()
        client.close()
        cluster.close()
    recording = prof.recording
    assert recording.timeline.marks("cluster lost") == []
    assert [loss for loss in recording.incidents.losses if not loss.expected] == []
    assert set(recording.tasks()["status"]) == {"memory"}
    assert len(recording.tasks()) == 10


def test_of_a_client_that_is_not_recorded_no_graph_gets_another_ones_line(
    client: Client, standing: str
) -> None:
    with Client(standing) as mine:
        with stageprof.profile(client=mine) as prof:
            computed(client, 1)  # not the client that is recorded
            mine.submit(inc, 1, pure=False).result()
        clean(client)
    graphs = prof.recording.timeline.graphs
    assert [graph.submit is None for graph in graphs] == [True, False]


def test_clients_one_after_another_within_a_second_are_both_recorded(
    client: Client, standing: str
) -> None:
    with stageprof.profile() as prof:
        for n in (5, 7, 9):
            with Client(standing) as one:
                computed(one, n)
    clean(client)
    assert len(prof.recording.tasks()) == 21
    assert set(prof.recording.tasks()["status"]) == {"memory"}


def test_a_region_that_never_lets_the_loop_run_joins_nothing_afterwards(
    client: Client, standing: str
) -> None:
    async def main(address: str) -> None:
        async with Client(address, asynchronous=True) as mine:
            before = asyncio.all_tasks()
            with stageprof.profile(client=mine):
                sum(range(1000))
            await asyncio.sleep(0)  # what the region left to the loop becomes a task
            while left := asyncio.all_tasks() - before:
                await asyncio.wait(left)
            assert await mine.run_on_scheduler(remains.of_scheduler) == []

    asyncio.run(main(standing))
    clean(client)


#: A program that forgets to close its client; Dask itself complains of it at the end.
FORGETFUL = """
import asyncio, os, sys, stageprof
from distributed import Client
from stageprof_runtime.process import installed
left = []
async def main():
    left.append(await Client(sys.argv[1], asynchronous=True))
with stageprof.profile() as prof:
    asyncio.run(main())
assert installed() == [], installed()
with stageprof.profile():
    pass
assert installed() == [], installed()
print("wall", prof.recording.wall > 0, flush=True)
os._exit(0)
"""


def test_a_client_whose_loop_has_ended_stops_nobody_from_recording(
    client: Client, standing: str
) -> None:
    line = [sys.executable, "-c", FORGETFUL, standing]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "wall True\n", done.stderr
    clean(client)


@pytest.mark.parametrize("when", ["start", "stop"])
def test_an_interrupt_while_a_cluster_is_waited_for_leaves_nothing(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with clusters.local(1) as client:
        prof = stageprof.profile(client=client)
        if when == "stop":
            prof.start()
        plain = Memberships._sync
        monkeypatch.setattr(Memberships, "_sync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            prof.stop() if when == "stop" else prof.start()
        assert not [t for t in threading.enumerate() if t.name == "stageprof-sampler"]
        monkeypatch.setattr(Memberships, "_sync", plain)
        assert not [name for name in process.installed() if name == "ring:client"]
    assert process.installed() == []


@pytest.mark.parametrize("step", ["start", "_tell_cells", "_tell_loops", "_flush"])
def test_an_interrupt_of_any_step_leaves_nothing(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a Ctrl-C while programs were looked at, say, all that was installed stayed for ever."""

    def interrupted(self: Any) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    prof = stageprof.profile()
    monkeypatch.setattr(Shipper if step == "start" else Session, step, interrupted)
    with pytest.raises(KeyboardInterrupt):
        prof.start().stop()
    clusters.soon(lambda: process.installed() == [], 15)  # a client's loop lets go of its cluster
    assert not [t for t in threading.enumerate() if t.name.startswith("stageprof")]


def test_an_async_region_may_end_in_another_context() -> None:
    async def main() -> None:
        stack = AsyncExitStack()

        async def begin() -> None:
            await stack.enter_async_context(stageprof.profile())

        await asyncio.create_task(begin())  # which has a context of its own
        await stack.aclose()

    asyncio.run(main())
    assert not [t for t in threading.enumerate() if t.name.startswith("stageprof")]


def test_each_of_several_workers_in_one_process_tells_of_its_own_tasks_once() -> None:
    with (
        LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
        stageprof.profile() as prof,
    ):
        addresses = sorted(client.scheduler_info()["workers"])
        futures = [
            client.submit(where, i, workers=[addresses[i % 3]], pure=False) for i in range(9)
        ]
        ran = client.gather(futures)
    store, tasks = prof.recording.store, prof.recording.tasks()
    told = store.table("run")["place"].tolist()  # the first were guessed by the scheduler, too
    assert sum(store.places[place].role == "worker" for place in told) == 9
    assert tasks["worker"].value_counts().to_dict() == {a: ran.count(a) for a in addresses}
    runs = prof.recording.timeline.runs
    names = [store.places[p].name for p in runs["wplace"]]
    assert sorted(names) == sorted(ran)


def test_a_task_that_leaves_its_thread_is_one_run() -> None:
    with clusters.local(1) as client, stageprof.profile() as prof:
        clusters.soon(lambda: any(place.startswith("worker ") for place in prof.live.now.copy()))
        assert client.submit(seceded, 5).result() == 5
    assert prof.recording.store.rows("run") == 1
    (assigned,), (start,) = (prof.recording.tasks()[name] for name in ("assigned_s", "start_s"))
    assert start > assigned


def test_what_an_outer_recording_knows_an_inner_one_is_told() -> None:
    import dask.array as da

    inner = []
    with stageprof.profile() as outer:
        for _ in range(2):
            with stageprof.profile() as prof:
                da.ones(4, chunks=2).sum().compute(scheduler="sync")
            inner.append(prof.recording)
    for recording in (*inner, outer.recording):
        layers = recording.layers()
        assert set(layers[layers["layer"] != ""]["file"]) == {__file__}


def test_each_of_two_sessions_on_one_scheduler_knows_its_graphs() -> None:
    with clusters.local(1) as client, stageprof.profile() as outer:
        computed(client, 3)
        with stageprof.profile() as inner:
            computed(client, 4)
    for prof, tasks in ((inner, [4]), (outer, [3, 4])):
        recording = prof.recording
        assert recording.computations()["tasks"].tolist() == tasks
        graphs = {(graph.place, graph.number) for graph in recording.timeline.graphs}
        causes = recording.timeline.runs["cause"]
        assert {-1 - int(c) for c in causes if c < 0} <= {number for _, number in graphs}


def test_a_cluster_that_was_not_joined_is_not_asked_for_the_time() -> None:
    asked: list[str] = []

    class Scheduler:
        address = "tcp://127.0.0.1:1"

        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            raise RuntimeError(name)

    class Odd:
        id, scheduler, status, scheduler_comm = "Client-1", Scheduler(), "running", None
        _stream_handlers: ClassVar[dict[str, Any]] = {}

    async def main() -> None:
        membership = Membership(Odd(), "session", Ring(), lambda _: None, Watches("client"))
        await membership.join(watch_gil=False)
        asked.clear()
        await membership.ping()
        membership._undo()

    asyncio.run(main())
    assert asked == []


def test_a_client_that_is_idle_keeps_no_recording() -> None:
    """It keeps what its last message was for; that was ours, and all that was recorded with it."""

    class Idle:
        id, scheduler, status, scheduler_comm = "Client-1", None, "running", None
        _scheduler_identity: ClassVar[dict[str, str]] = {"id": "Scheduler-1"}

        def __init__(self) -> None:
            self._stream_handlers: dict[str, Any] = {}

    idle, got = Idle(), list[bytes]()
    membership = Membership(idle, "session", Ring(), got.append, Watches("client"))
    latest = idle._stream_handlers["session-batch"]
    latest(batch=b"batch")
    known = weakref.ref(membership)
    membership._undo()
    del membership
    gc.collect()

    assert got == [b"batch"]
    assert known() is None
    assert latest(batch=b"late") is None


def test_a_client_starts_although_nobody_answers_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waited as long as a scheduler was busy."""

    class Stuck:
        async def started(self, _client: object) -> None:
            await asyncio.Event().wait()

    async def start(self: object) -> str:
        return "started"

    monkeypatch.setattr(clients, "PATIENCE_S", 0.01)
    monkeypatch.setattr(clients, "followers", [Stuck()])
    assert asyncio.run(clients._started(start)(object())) == "started"
