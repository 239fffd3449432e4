"""Real clusters: workers come, go and die, and so do owners; nothing of ours is left anywhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import clusters
import remains
import stageprof

pytestmark = pytest.mark.cluster


def inc(x: int) -> int:
    return x + 1


def nap(x: int, seconds: float = 0.02) -> int:
    time.sleep(seconds)
    return x + 1


def pid() -> int:
    return os.getpid()


def no_more(now: list[dict[str, int]], before: list[dict[str, int]]) -> bool:
    """No more of anything, but for connections that Dask pools: the same few for any cycles.

    Less may be: what earlier tests left is being cleaned up in this process.
    """
    spare = {"fds": 3}
    return all(n[k] <= b[k] + spare.get(k, 0) for n, b in zip(now, before, strict=True) for k in b)


def pids(client: Client) -> set[int]:
    """Of the workers that answer; one that died may still be listed."""
    return set(client.run(pid, on_error="ignore").values())


def instrumented(recording: stageprof.Recording) -> dict[str, bool]:
    workers = recording.workers()
    return dict(zip(workers["worker"], workers["instrumented"].astype(bool), strict=True))


def clean(client: Client, timeout: float = 10) -> None:
    """Soon nothing of ours is on the cluster or in the client."""
    clusters.soon(lambda: remains.everywhere(client) + remains.of_client(client) == [], timeout)


@pytest.mark.smoke
def test_a_worker_that_joins_under_load_is_recorded_from_its_first_task() -> None:
    with clusters.separate(1) as client:
        prof = stageprof.profile().start()
        futures = client.map(nap, range(200), pure=False)
        started = time.perf_counter()
        with clusters.worker(clusters.scheduler_of(client)):
            client.wait_for_workers(2, timeout=30)
            joined = time.perf_counter() - started
            assert client.gather(futures) == list(range(1, 201))
            recording = prof.stop()
    assert joined < 20  # of which nearly all is starting Python
    assert list(instrumented(recording).values()) == [True, True]
    assert recording.workers()["tasks"].min() > 0
    assert recording.workers()["tasks"].sum() == 200


def test_a_retired_worker_loses_nothing() -> None:
    with clusters.separate(2) as client:
        first, _ = client.scheduler_info()["workers"]
        with stageprof.profile() as prof:
            client.gather(client.map(inc, range(200), pure=False))
            client.retire_workers([first])
            clusters.soon(lambda: len(client.scheduler_info()["workers"]) == 1)
            client.gather(client.map(inc, range(50), pure=False))
        clean(client)
    workers = prof.recording.workers()
    assert int(workers["tasks"].sum()) == 250
    assert int(workers["left"].sum()) == 1
    assert prof.recording.coverage()["batches_lost"] == 0


@pytest.mark.smoke
def test_a_killed_worker_comes_back_instrumented() -> None:
    """At most what was emitted since the last batch is lost."""
    with clusters.local(2) as client:
        with stageprof.profile() as prof:
            client.gather(client.map(inc, range(50), pure=False))
            process = next(iter(client.run(pid).values()))
            os.kill(process, signal.SIGKILL)
            clusters.soon(lambda: len(pids(client) - {process}) == 2)
            assert client.gather(client.map(nap, range(60), pure=False)) == list(range(1, 61))
            living = pids(client)
        clean(client)
    workers = prof.recording.workers().set_index("pid")
    assert living < set(workers.index)
    assert workers["instrumented"].all()
    assert workers.loc[list(living), "tasks"].min() > 0
    assert workers["left"].to_dict() == {p: p == process for p in workers.index}


OWNER = """
import sys, time, distributed, stageprof
client = distributed.Client(sys.argv[1])
with stageprof.profile(sys.argv[2]):
    futures = client.map(lambda x: time.sleep(0.01) or x, range(10_000), pure=False)
    print("on", flush=True)
    client.gather(futures)
"""


def owner(address: str, path: Path) -> subprocess.Popen[str]:
    """Another process that records a long computation; it says when it has begun."""
    line = [sys.executable, "-c", OWNER, address, str(path)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    return process


@pytest.mark.smoke
def test_when_the_owner_is_killed_everything_of_it_goes(client: Client, tmp_path: Path) -> None:
    """F7: plugins, handlers, threads; of memory and of time see tests/reliability."""
    path = tmp_path / "killed.stageprof"
    process = owner(clusters.scheduler_of(client), path)
    clusters.soon(lambda: path.stat().st_size > 2_000)
    assert remains.everywhere(client) != []
    process.kill()
    process.communicate()
    clusters.soon(lambda: remains.everywhere(client) == [])
    assert client.submit(inc, 1).result(timeout=10) == 2
    recording = stageprof.open(path)
    assert not recording.coverage()["complete"]
    assert recording.coverage()["events"] > 0


def test_a_session_goes_when_its_clients_connection_closes(client: Client) -> None:
    """Without a goodbye: the client closes, the session does not know."""
    other = Client(clusters.scheduler_of(client), set_as_default=False)
    prof = stageprof.profile(client=other)
    prof.start()
    assert remains.everywhere(client) != []
    assert other.loop is not None
    assert other.scheduler_comm is not None
    other.loop.add_callback(other.scheduler_comm.comm.abort)
    clusters.soon(lambda: remains.everywhere(client) == [], 5)
    other.close()
    prof.stop()
    clean(client)
    assert remains.of_process() == []


def test_two_in_a_row_and_nested_do_not_mix(client: Client) -> None:
    for n in (20, 30):
        with stageprof.profile() as prof:
            client.gather(client.map(inc, range(n), pure=False))
        assert int(prof.recording.workers()["tasks"].sum()) == n
    with stageprof.profile() as outer:
        client.gather(client.map(inc, range(10), pure=False))
        with stageprof.profile() as inner:
            client.gather(client.map(inc, range(20), pure=False))
        client.gather(client.map(inc, range(30), pure=False))
    clean(client)
    assert int(inner.recording.workers()["tasks"].sum()) == 20
    assert int(outer.recording.workers()["tasks"].sum()) == 60


def test_two_threads_may_profile_at_once(client: Client) -> None:
    recordings: dict[int, stageprof.Recording] = {}

    def profiled(client: Client, n: int) -> None:
        with stageprof.profile(client=client) as prof:
            assert client.gather(client.map(nap, range(n), pure=False)) == list(range(1, n + 1))
        recordings[n] = prof.recording

    threads = [threading.Thread(target=profiled, args=(client, n)) for n in (20, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    clean(client)
    assert set(recordings) == {20, 40}
    for n, recording in recordings.items():
        assert int(recording.workers()["tasks"].sum()) >= n
        assert abs(recording.stages()["wall_s"].sum() - recording.wall) < 0.01 * recording.wall


def test_two_clients_may_record_one_cluster(client: Client) -> None:
    with Client(clusters.scheduler_of(client)) as other:
        first, second = stageprof.profile(client=client), stageprof.profile(client=other)
        first.start()
        second.start()
        client.gather(client.map(inc, range(30), pure=False))
        first.stop()
        assert remains.everywhere(client) != []
        other.gather(other.map(inc, range(20), pure=False))
        second.stop()
        clean(client)
    assert int(first.recording.workers()["tasks"].sum()) == 30
    assert int(second.recording.workers()["tasks"].sum()) == 50


@pytest.mark.parametrize("cycles", [10, pytest.param(100, marks=pytest.mark.nightly)])
def test_many_cycles_leave_nothing_behind(cycles: int, client: Client) -> None:
    """The same plugins, handlers, replaced attributes, threads and open files as before."""

    def cycle() -> None:
        with stageprof.profile():
            client.gather(client.map(inc, range(5), pure=False))

    def counts() -> list[Any]:
        places = [remains.count(), client.run_on_scheduler(remains.count)]
        return [*places, *client.run(remains.count).values()]

    for _ in range(5):  # Dask's own pools of connections and threads fill first
        cycle()
    clean(client)
    before = counts()
    for _ in range(cycles):
        cycle()
    clean(client)
    clusters.soon(lambda: no_more(counts(), before), 10)


@pytest.mark.parametrize(
    "seconds", [2, pytest.param(12, marks=pytest.mark.nightly)], ids=["short", "long"]
)
def test_a_worker_that_is_stopped_for_a_while_loses_nothing(seconds: float, client: Client) -> None:
    with stageprof.profile() as prof:
        client.gather(client.map(inc, range(50), pure=False))
        process = next(iter(client.run(pid).values()))
        os.kill(process, signal.SIGSTOP)
        timer = threading.Timer(seconds, os.kill, (process, signal.SIGCONT))
        timer.start()
        assert client.gather(client.map(inc, range(50), pure=False)) == list(range(1, 51))
        timer.join()
        assert client.gather(client.map(inc, range(50), pure=False)) == list(range(1, 51))
    clean(client)
    assert len(client.scheduler_info()["workers"]) == 2
    assert int(prof.recording.workers()["tasks"].sum()) == 150
    assert prof.recording.coverage()["batches_lost"] == 0


@pytest.mark.nightly
def test_a_worker_that_is_stopped_while_the_session_ends_stays_in_the_cluster() -> None:
    """It hears of the end only when it goes on; until then its batches must find a handler."""
    with clusters.separate(2) as client:
        with stageprof.profile():
            client.gather(client.map(inc, range(50), pure=False))
            address, process = next(iter(client.run(pid).items()))
            os.kill(process, signal.SIGSTOP)
            started = time.perf_counter()
        assert time.perf_counter() - started < 15
        os.kill(process, signal.SIGCONT)
        clean(client, 20)
        assert client.run(pid)[address] == process


SCHEDULER_DIES = """
import sys, os, signal, time, distributed, stageprof
client = distributed.Client(sys.argv[1])
def pid(): return os.getpid()
scheduler = client.run_on_scheduler(pid)
with stageprof.profile(sys.argv[2]) as prof:
    client.gather(client.map(lambda x: x, range(100)))
    while prof.live.tasks[2] < 100:
        time.sleep(0.01)
    futures = client.map(lambda x: time.sleep(0.1) or x, range(100), pure=False)
    os.kill(scheduler, signal.SIGKILL)
    try:
        client.gather(futures)
    except BaseException as error:
        print(type(error).__module__, type(error).__name__, flush=True)
client.close()
"""


def test_when_the_scheduler_is_killed_the_recording_is_readable(tmp_path: Path) -> None:
    """And the user sees Dask's own error, the same as without us."""
    path = tmp_path / "r.stageprof"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "2s")
        with clusters.separate(1) as client:
            address = clusters.scheduler_of(client)
            client.close()
            line = [sys.executable, "-c", SCHEDULER_DIES, address, str(path)]
            done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    module, name = done.stdout.split()
    assert module.startswith(("distributed", "asyncio", "concurrent")), (module, name)
    assert "Traceback" not in done.stderr or "stageprof" not in done.stderr
    recording = stageprof.open(path)
    assert recording.coverage()["complete"]
    assert len(recording.tasks()) >= 100
    assert recording.coverage()["problems"] != []


def test_what_wrappers_take_beside_what_they_wrap_is_told_as_a_cost_of_ours(
    client: Client, tmp_path: Path
) -> None:
    with stageprof.profile(tmp_path / "r.stageprof", client=client) as prof:
        client.gather(client.map(inc, range(300), pure=False))
    overhead = prof.recording.coverage()["overhead"]
    cost = overhead["wrappers"]
    assert cost["calls"] > 2 * 300
    assert 0 < cost["seconds"] < prof.recording.wall
    assert "collector" in overhead
