"""Futures, actors, nested tasks, threads, async clients; work done twice."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, Future, Worker, as_completed, wait

import clusters
import planted
import stageprof
from truth import adds_up, appears_in, in_steps, read_back, record, step_seconds


@pytest.mark.smoke
def test_submit_and_result(cluster: Client, tmp_path: Path) -> None:
    """A future's task is execution, at the line that submitted it."""

    def program(log: str, delay: float) -> None:
        cluster.submit(planted.work, log, delay, pure=False).result()

    reading = read_back(program, 0.5, tmp_path)
    appears_in(reading, {"execution": reading.seconds("work")})
    layer = reading.recording.layers().iloc[0]
    assert (layer["prefix"], layer["file"]) == ("work", __file__)
    assert layer["line"] == program.__code__.co_firstlineno + 1


def test_map_and_as_completed(cluster: Client, tmp_path: Path) -> None:
    """Waiting for futures as they complete is accounted by what ran."""

    def program(log: str, delay: float) -> None:
        futures = cluster.map(planted.work, [log] * 6, [delay] * 6, pure=False)
        assert len([f.result() for f in as_completed(futures)]) == 6

    reading = read_back(program, 0.2, tmp_path)
    appears_in(reading, {"execution": reading.seconds("work") / 2})


def test_persist_and_wait(cluster: Client, tmp_path: Path) -> None:
    """Persist returns at once; the waiting is accounted where it happens."""

    def program(log: str, delay: float) -> None:
        parts = [dask.delayed(planted.work)(log, delay) for _ in range(4)]
        wait(cluster.persist(parts))

    reading = read_back(program, 0.25, tmp_path)
    appears_in(reading, {"execution": reading.seconds("work") / 2})


def test_a_task_that_launches_a_task(cluster: Client, tmp_path: Path) -> None:
    """What the inner task does is execution, through the outer one that waits for it."""

    def program(log: str, delay: float) -> None:
        cluster.submit(planted.launches, log, delay, pure=False).result()

    reading = read_back(program, 0.5, tmp_path)
    appears_in(reading, {"execution": reading.seconds("work")})
    assert len(reading.recording.tasks()) == 2


def test_an_actor(cluster: Client, tmp_path: Path) -> None:
    """Calls of an actor are execution."""

    def program(log: str, delay: float) -> None:
        counter: Any = cluster.submit(planted.Counter, actor=True).result()
        assert counter.add(log, delay).result() == 1

    reading = read_back(program, 0.5, tmp_path)
    appears_in(reading, {"execution": reading.seconds("actor")})


def test_what_an_actor_gives_is_a_result(cluster: Client, tmp_path: Path) -> None:
    """Its pickling is serialization, at the worker and at the client."""

    def program(log: str, delay: float) -> None:
        counter: Any = cluster.submit(planted.Counter, actor=True).result()
        counter.give(log, delay).result()

    reading = read_back(program, 0.4, tmp_path)
    dump, load = reading.seconds("dump"), reading.seconds("load")
    assert min(dump, load) >= 0.4
    appears_in(reading, {"serialization": dump + load})
    in_steps(reading, {"result.dump": dump, "result.load": load})


def test_a_retry_is_recomputed(cluster: Client, tmp_path: Path) -> None:
    """A task that fails once and is done again costs both runs, and is reported."""
    marker = tmp_path / "failed"

    def program(log: str, delay: float) -> None:
        marker.unlink(missing_ok=True)
        task = cluster.submit(planted.fail_once, str(marker), log, delay, retries=1, pure=False)
        assert task.result() == 1

    reading = read_back(program, 0.4, tmp_path)
    appears_in(reading, {"execution": reading.seconds("work")})
    again = reading.recording.recomputed()
    assert again["reason"].tolist() == ["retried"]
    first = reading.truth[0]["seconds"]
    assert first <= again["seconds"].sum() < first + 0.15


def test_a_lost_worker_is_recomputed(tmp_path: Path) -> None:
    """A task whose worker dies is done again elsewhere; the lost run is on the path, as lost."""
    marker, log = tmp_path / "died", tmp_path / "log"
    with clusters.separate(2, 1) as client:

        def program() -> None:
            task = client.submit(planted.die_once, str(marker), str(log), 0.6, pure=False)
            assert task.result() == 1

        recording = record(program)
    again = recording.recomputed()
    assert again["reason"].tolist() == ["lost"]
    done = sum(t["seconds"] for t in planted.truths(log))
    assert step_seconds(recording, "compute") == pytest.approx(done, rel=0.1, abs=0.15)
    assert recording.workers()["left"].sum() == 1


def test_stolen_tasks_are_not_work_done_twice(cluster: Client, tmp_path: Path) -> None:
    """Tasks that another worker steals are followed there; their waiting is execution."""
    first = next(iter(cluster.scheduler_info()["workers"]))

    def program(log: str, delay: float) -> None:
        options: dict[str, Any] = {"workers": [first], "allow_other_workers": True, "pure": False}
        cluster.gather(cluster.map(planted.work, [log] * 40, [delay] * 40, **options))

    reading = read_back(program, 0.03, tmp_path)
    stages = reading.recording.stages()["wall_s"]
    assert stages["execution"] >= reading.seconds("work") / 2 * 0.95
    assert stages["communication"] < 0.1 + 0.1 * reading.recording.wall
    assert len(reading.recording.recomputed()) == 0
    tasks = reading.recording.tasks()
    assert (tasks["status"] == "memory").sum() == 40
    assert tasks[tasks["status"] == "memory"]["worker"].nunique() == 2


def executing(dask_worker: Worker) -> int:
    """How many tasks a worker runs."""
    return dask_worker.state.executing_count


def cancelled(client: Client, log: str, seconds: float) -> Future[float]:
    """A task, of the log's name, that was cancelled when it ran on one worker."""
    [one, *_] = client.scheduler_info()["workers"]
    future = client.submit(
        planted.work, log, seconds, key=log, workers=one, allow_other_workers=True
    )
    clusters.soon(lambda: any(client.run(executing).values()))
    future.cancel()
    return future


def test_a_cancelled_future(cluster: Client, tmp_path: Path) -> None:
    """Its function goes on: its worker's work is all there, and is for nothing."""
    log = str(tmp_path / "log")

    def program() -> None:
        cancelled(cluster, log, 0.6)
        clusters.soon(lambda: planted.truths(log))

    recording = record(program)

    [noted] = planted.truths(log)
    work = recording.stages()["busy_s"]["execution"]
    assert work == pytest.approx(noted["seconds"], rel=0.05, abs=0.05)
    [row] = recording.recomputed().to_dict("records")
    assert (row["key"], row["runs"], row["reason"]) == (log, 1, "taken back")
    assert row["seconds"] == pytest.approx(noted["seconds"], rel=0.05, abs=0.05)


def test_what_was_cancelled_and_is_wanted_again_is_work_done_twice(
    cluster: Client, tmp_path: Path
) -> None:
    """The other worker does it; the program waits for that alone."""
    log = str(tmp_path / "log")

    def program() -> None:
        before = cancelled(cluster, log, 0.6)
        [_, other] = cluster.scheduler_info()["workers"]
        # By then the client has heard of it, which would cancel what it submits by that key.
        cluster.submit(planted.identity, 1, pure=False, workers=other).result()
        cluster.submit(planted.work, log, 0.6, key=log, workers=other).result()
        assert before.cancelled()

    recording = record(program)

    first, second = (noted["seconds"] for noted in planted.truths(log))
    stages = recording.stages()
    for column, seconds in (("busy_s", first + second), ("wall_s", second)):
        found = stages[column]["execution"]
        assert found == pytest.approx(seconds, rel=0.05, abs=0.05), column
    [row] = recording.recomputed().to_dict("records")
    assert (row["key"], row["runs"], row["reason"]) == (log, 2, "taken back")
    assert row["seconds"] == pytest.approx(first, rel=0.05, abs=0.05)


def test_computations_of_other_threads_are_listed_but_not_accounted(
    cluster: Client, tmp_path: Path
) -> None:
    """The account is the region's own thread's; what others compute meanwhile is in the tables."""

    def other() -> None:
        cluster.submit(planted.work, str(tmp_path / "other"), 0.5, pure=False).result()

    def program() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        planted.timed_sleep(str(tmp_path / "own"), "own", 0.2)
        thread.join()

    recording = record(program)
    assert len(recording.computations()) == 1
    stages = recording.stages()["wall_s"]
    assert stages["outside"] > 0.95 * recording.wall
    (noted,) = planted.truths(tmp_path / "other")
    busy = recording.stages()["busy_s"]["execution"]
    assert busy == pytest.approx(noted["seconds"], rel=0.1, abs=0.05)
    (told,) = (f for f in recording.findings() if f.rule == "nothing-to-fix")
    assert told.headline.startswith("Not in this account: 1 computation of other threads")
    assert "with stageprof.profile():" in told.fix.text
    assert not recording.innocence(), "nobody is acquitted of a time that the account does not have"


def test_an_async_client(tmp_path: Path) -> None:
    """An async region is accounted for its task: awaiting the cluster, and its own time."""
    log = str(tmp_path / "log")

    async def program(address: str) -> stageprof.Recording:
        async with Client(address, asynchronous=True) as client:
            await client.submit(planted.identity, 1)
            async with stageprof.profile(client=client) as prof:
                assert await client.submit(planted.work, log, 0.5, pure=False) == 0.5
                begun = time.perf_counter()
                await asyncio.sleep(0.3)
                planted.note(log, "own", begun)
            return prof.recording

    with clusters.separate(1, 1) as client:
        recording = asyncio.run(program(clusters.scheduler_of(client)))
    adds_up(recording)
    stages = recording.stages()["wall_s"]
    work, own = (noted["seconds"] for noted in planted.truths(log))
    assert stages["execution"] == pytest.approx(work, rel=0.05, abs=0.05)
    assert stages["outside"] == pytest.approx(own, rel=0.05, abs=0.06)
