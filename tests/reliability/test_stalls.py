"""Processes that stand still for seconds: what they hold meanwhile arrives when they go on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from distributed import Client

import clusters
import stageprof
from reliability import emitting
from reliability.accounts import inc, nap, pid, processes, right

pytestmark = [pytest.mark.cluster, pytest.mark.nightly]

#: Rows of each emitter, and how many a second: for seconds longer than anything stands still.
EACH, RATE = 34_400, 5_000.0


def _block(seconds: float) -> None:
    """The scheduler's loop does nothing else for so long."""
    time.sleep(seconds)


def stop_a_worker(client: Client) -> None:
    """SIGSTOP for four seconds."""
    process = next(iter(processes(client).values()))
    os.kill(process, signal.SIGSTOP)
    threading.Timer(4, os.kill, (process, signal.SIGCONT)).start()


def block_the_scheduler(client: Client) -> None:
    """Its loop does something else for three seconds."""
    client.run_on_scheduler(_block, 3.0)


@pytest.mark.parametrize("fault", [stop_a_worker, block_the_scheduler])
def test_what_was_emitted_while_a_process_stood_still_arrives(
    fault: Callable[[Client], None], record_property: Callable[[str, object], None]
) -> None:
    """F10: SIGSTOP of a worker for 4 s, a scheduler that is blocked for 3 s: 0 rows lost."""
    with clusters.separate(2) as client:
        with stageprof.profile() as prof:
            emitted = client.run(emitting.emit, 1, EACH, RATE, wait=False)
            futures = client.map(inc, range(100), pure=False)
            fault(client)
            assert client.gather(futures) == right(100)
            assert emitted is None
            clusters.soon(lambda: all(n >= EACH for n in client.run(emitting.numbered).values()))
            client.gather(client.map(inc, range(20), pure=False))
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 2
    coverage = prof.recording.coverage()
    record_property("F10", emitting.missing(prof.recording, EACH))
    assert list(emitting.missing(prof.recording, EACH).values()) == [0, 0]
    assert coverage["dropped"] == {}
    assert coverage["batches_lost"] == 0
    assert int(prof.recording.workers()["tasks"].sum()) == 120


def test_what_was_in_the_file_when_the_scheduler_was_killed_is_read(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """F10: SIGKILL of the scheduler: the recording is closed, and readable to its last frame."""
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "2s")
    path = tmp_path / "r.stageprof"
    with clusters.process("scheduler", "--port", "0", "--no-dashboard") as scheduler:
        address = clusters.address_of(scheduler)
        with clusters.worker(address), Client(address, timeout="10s") as client:
            client.wait_for_workers(1, timeout=60)
            prof = stageprof.profile(path).start()
            assert client.gather(client.map(inc, range(100), pure=False)) == right(100)
            clusters.soon(lambda: len(stageprof.open(path).tasks()) == 100)
            futures = client.map(nap, range(1_000), pure=False)
            os.kill(client.run_on_scheduler(pid), signal.SIGKILL)
            started = time.perf_counter()
            recording = prof.stop()
            took = time.perf_counter() - started
            del futures
    record_property("F10 scheduler", {"stop_s": took, "tasks": len(recording.tasks())})
    coverage = recording.coverage()
    assert coverage["complete"]
    assert coverage["problems"] != []
    assert len(recording.tasks()) >= 100
    assert list(stageprof.open(path).tasks()["key"]) == list(recording.tasks()["key"])
