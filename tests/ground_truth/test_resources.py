"""Tasks, and the user's own thread, that wait for what others have: the step wait.resource."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import pytest
from dask.utils import SerializableLock
from distributed import Client, Event, LocalCluster, Lock, Queue, Semaphore, Variable, wait

import planted
import stageprof
from stageprof_collectors.recording import Recording
from truth import Reading, adds_up, read_back, record, step_seconds

#: Seconds that somebody has what the others wait for.
HELD = 0.2


def locked(log: str, delay: float) -> None:
    with Lock("ground-truth"):
        planted.timed_sleep(log, "held", delay)


def limited(log: str, delay: float) -> None:
    with Semaphore(max_leases=1, name="ground-truth-leases"):
        planted.timed_sleep(log, "held", delay)


def guarded(log: str, delay: float) -> None:
    with SerializableLock("ground-truth"):
        planted.timed_sleep(log, "held", delay)


def in_turn(reading: Reading) -> float:
    """Seconds that all but the first wait in sum: each for all that come before it."""
    return math.fsum(accumulate(noted["seconds"] for noted in reading.truth[:-1]))


def test_threads_of_one_worker_wait_for_its_lock(tmp_path: Path) -> None:
    """Four tasks on four threads of a process, such as read HDF5 files."""
    beside = LocalCluster(
        n_workers=1, threads_per_worker=4, processes=False, dashboard_address=":0"
    )
    with beside as made, Client(made) as client:

        def program(log: str, delay: float) -> None:
            client.gather(client.map(guarded, [log] * 4, [delay] * 4, pure=False))

        reading = read_back(program, HELD, tmp_path)
    recording = reading.recording
    adds_up(recording)
    sums = recording.steps().groupby("step")[["busy_s", "waited_s"]].sum()
    assert sums["waited_s"]["wait.resource"] == pytest.approx(in_turn(reading), rel=0.1, abs=0.1)
    assert sums["busy_s"]["compute"] == pytest.approx(reading.seconds("held"), rel=0.1, abs=0.1)


@pytest.mark.parametrize("task", [locked, limited])
def test_tasks_that_take_turns_wait_for_a_resource(
    cluster: Client, task: Callable[[str, float], None], tmp_path: Path
) -> None:
    """Four tasks on two threads: the path is one that waits, and has it, and the next behind it."""

    def program(log: str, delay: float) -> None:
        cluster.gather(cluster.map(task, [log] * 4, [delay] * 4, pure=False))

    reading = read_back(program, HELD, tmp_path)
    recording = reading.recording
    adds_up(recording)
    wall = recording.stages()["wall_s"]
    held_s = reading.seconds("held")
    assert wall["execution"] == pytest.approx(held_s, rel=0.1, abs=0.05)
    assert step_seconds(recording, "wait.resource") > HELD
    sums = recording.steps().groupby("step")[["busy_s", "waited_s"]].sum()
    # While one of two threads has it the other waits: all the time but the last.
    others_s = held_s - reading.truth[-1]["seconds"]
    assert sums["waited_s"]["wait.resource"] == pytest.approx(others_s, rel=0.15, abs=0.1)
    assert sums["busy_s"]["wait.resource"] == 0
    assert sums["busy_s"]["compute"] == pytest.approx(held_s, rel=0.1, abs=0.1)


def test_tasks_that_need_a_workers_resource_wait_for_it(tmp_path: Path) -> None:
    """Four threads, and a resource for one task at a time."""

    def program(log: str, delay: float) -> None:
        needs = {"resources": {"GPU": 1}}
        client = Client.current()
        client.gather(client.map(planted.work, [log] * 4, [delay] * 4, pure=False, **needs))

    beside = LocalCluster(
        n_workers=1,
        threads_per_worker=4,
        processes=False,
        dashboard_address=":0",
        resources={"GPU": 1},
    )
    with beside as made, Client(made):
        reading = read_back(program, HELD, tmp_path)
    recording = reading.recording
    adds_up(recording)
    waited = recording.steps().groupby("step")["waited_s"].sum()
    assert waited["wait.resource"] == pytest.approx(in_turn(reading), rel=0.1, abs=0.1)
    assert waited.get("wait.thread", 0.0) < 0.1
    wall = recording.stages()["wall_s"]
    assert wall["execution"] == pytest.approx(reading.seconds("work"), rel=0.1, abs=0.05)


def by_event(client: Client, log: str) -> None:
    def sets() -> None:
        planted.timed_sleep(log, "other", 0.5)
        Event("ground-truth").set()

    future = client.submit(sets, pure=False)
    Event("ground-truth").wait()
    future.result()
    Event("ground-truth").clear()


def by_queue(client: Client, log: str) -> None:
    def puts() -> None:
        planted.timed_sleep(log, "other", 0.5)
        Queue("ground-truth").put(1)

    queue = Queue("ground-truth")
    future = client.submit(puts, pure=False)
    assert queue.get() == 1
    future.result()


def by_variable(client: Client, log: str) -> None:
    def sets() -> None:
        planted.timed_sleep(log, "other", 0.5)
        Variable("ground-truth").set(1)

    future = client.submit(sets, pure=False)
    assert Variable("ground-truth").get() == 1
    future.result()
    Variable("ground-truth").delete()


@pytest.mark.parametrize("program", [by_event, by_queue, by_variable])
def test_who_waits_for_a_task_to_say_something_waits_for_its_execution(
    cluster: Client, program: Callable[[Client, str], None], tmp_path: Path
) -> None:
    """It was `scheduling`, or messages, since no key was waited for."""
    log = str(tmp_path / "log")
    recording = record(lambda: program(cluster, log))
    adds_up(recording)
    wall = recording.stages()["wall_s"]
    (noted,) = planted.truths(log)
    assert wall["execution"] == pytest.approx(noted["seconds"], rel=0.1, abs=0.05)
    assert wall["scheduling"] + wall["communication"] < 0.1


def test_who_has_a_lock_waits_for_nobody(cluster: Client, tmp_path: Path) -> None:
    """The round trip of asking for it is short; what is done with it is the user's own."""
    with stageprof.profile(gil=False) as region, Lock("ground-truth-free"):
        planted.timed_sleep(str(tmp_path / "log"), "held", HELD)
    recording: Recording = region.recording
    (noted,) = planted.truths(tmp_path / "log")
    outside = recording.stages()["wall_s"]["outside"]
    assert outside == pytest.approx(noted["seconds"], rel=0.1, abs=0.05)


def test_who_gives_up_waiting_waited_for_what_goes_on(cluster: Client, tmp_path: Path) -> None:
    """It was messages: no key came."""
    log = str(tmp_path / "log")

    def program() -> None:
        futures = cluster.map(planted.work, [log] * 2, [0.8] * 2, pure=False)
        with pytest.raises(TimeoutError):
            wait(futures, timeout=0.4)
        cluster.gather(futures)

    recording = record(program)
    adds_up(recording)
    took = max(noted["seconds"] for noted in planted.truths(log))
    execution = recording.stages()["wall_s"]["execution"]
    assert execution == pytest.approx(took, rel=0.1, abs=0.05)
