"""Memory of workers: what is measured around tasks, their thresholds, and what befalls them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest
from distributed import Client, LocalCluster, wait

import clusters
import stageprof
from stageprof_runtime.probes.memory import LARGE_BYTES, LONG_NS, RATE, SILENT_NS, Meter

SECOND = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = SECOND

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_process_is_measured_so_often_and_no_more(clock: Clock) -> None:
    meter, times = Meter(clock), 0
    for _ in range(1000):
        times += meter.before() > 0
        clock.now += SECOND // 1000
    assert 0.9 * RATE <= times <= RATE


def test_a_process_is_as_large_as_psutil_says_also_when_its_file_is_closed(clock: Clock) -> None:
    meter = Meter(clock)
    for _ in range(2):
        there = psutil.Process().memory_info().rss
        assert meter.bytes() == pytest.approx(there, rel=0.05)
        meter.close()


@pytest.mark.parametrize(
    ("nbytes", "took", "since", "measured"),
    [
        (LARGE_BYTES, 0, 0, True),
        (0, LONG_NS, 0, True),
        (0, 0, SILENT_NS, True),
        (LARGE_BYTES - 1, LONG_NS - 1, 0, False),
    ],
)
def test_what_is_small_and_short_is_not_measured_again(
    clock: Clock, nbytes: int, took: int, since: int, *, measured: bool
) -> None:
    meter = Meter(clock)
    meter.after(0, LARGE_BYTES)
    began = clock.now = clock.now + since
    clock.now += took if took < SILENT_NS or since else 0
    assert (meter.after(began - (took if clock.now == began else 0), nbytes) > 0) == measured


def fill(megabytes: int) -> bytearray:
    return bytearray(os.urandom(1_000_000) * megabytes)


@pytest.mark.smoke
@pytest.mark.cluster
def test_the_growth_around_a_large_result_is_its_size() -> None:
    """C14: what Dask takes a result for can be held against what the process took."""
    runs = 12  # of some 40 ms each: ten a second are measured at most
    with clusters.separate(1) as client, stageprof.profile() as prof:
        futures = [client.submit(fill, 60, pure=False) for _ in range(runs)]
        wait(futures)
    around = prof.recording.memory.around
    assert len(around["row"]) >= 3
    grown = (around["after"] - around["before"])[-2:]
    assert grown.tolist() == pytest.approx([60e6, 60e6], rel=0.3)
    assert around["managed"][-1] >= 60e6
    assert prof.recording.coverage()["disabled"] == []


@pytest.mark.cluster
def test_limit_and_thresholds_are_those_in_force_on_the_worker() -> None:
    """C13: four thresholds, read from the live configuration."""
    changed = {"distributed.worker.memory.target": 0.5, "distributed.worker.memory.pause": False}
    with dask.config.set(changed), nannied(limit="2GB") as client:
        recording = recorded(client, 1)
    (limits,) = recording.memory.limits.values()
    assert limits == (2e9, 0.5, 0.7, 0.0, 0.95)


@pytest.mark.cluster
def test_without_a_nanny_nobody_ends_a_worker() -> None:
    with clusters.separate(1, options=("--memory-limit", "800MB")) as client:
        recording = recorded(client, 1)
    (limits,) = recording.memory.limits.values()
    assert limits == (800e6, 0.6, 0.7, 0.8, 0.0)


@pytest.mark.nightly
@pytest.mark.cluster
def test_pauses_and_kills_are_recorded_with_their_instants() -> None:
    """C12, C13: a worker over its limit is paused, and then ended by its nanny."""
    settings = {"distributed.scheduler.allowed-failures": 0}
    with dask.config.set(settings), nannied(limit="400MB") as client, stageprof.profile() as prof:
        future = client.submit(swell, 20)
        assert future.exception() is not None
    incidents = prof.recording.incidents
    (kill,) = incidents.kills
    assert kill.taken >= 0.95 * 400e6
    assert [(loss.worker, loss.running) for loss in incidents.losses][:1] == [(kill.worker, 1)]
    (spans,) = incidents.pauses.values()
    assert spans[0][0] < kill.t
    assert spans[0][1] <= kill.t + 2 * SECOND


def swell(megabytes: int) -> Any:
    """Take more and more memory, slowly enough to be seen, until somebody ends it."""
    import time

    held = []
    while True:
        held.append(fill(megabytes))
        time.sleep(0.05)


def recorded(client: Client, number: int) -> stageprof.Recording:
    with stageprof.profile() as prof:
        client.submit(abs, number).result()
    return prof.recording


class nannied:  # noqa: N801 (used like a function)
    """A client of one worker with a nanny and a memory limit."""

    def __init__(self, limit: str) -> None:
        self._cluster = LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit=limit, dashboard_address=":0"
        )

    def __enter__(self) -> Client:
        self._client = Client(self._cluster)
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._cluster.close()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the process has no such file")
def test_a_file_of_the_users_is_not_taken_for_ours(tmp_path: Path) -> None:
    """A task may close all open files; the next one that it opens has the number of ours."""
    meter = Meter()
    number = meter._file._file.number
    os.close(number)
    with (tmp_path / "theirs").open("w+b", buffering=0) as theirs:
        if theirs.fileno() != number:
            os.dup2(theirs.fileno(), number)
        theirs.write(b"1 2 3")
        assert meter.bytes() > 1_000_000
        meter.close()
        assert os.pread(number, 5, 0) == b"1 2 3"
        if theirs.fileno() != number:
            os.close(number)
