"""Task time, queueing, chains, spilling, and the user's own code."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import dask
import dask.array as da
import dask.bag as db
import pytest
from distributed import Client, get_client, wait

import clusters
import planted
from stageprof_collectors.profiles.flame import flame
from stageprof_collectors.profiles.lines import own_lines
from stageprof_runtime.stage import Stage
from truth import adds_up, appears_in, in_steps, read_back, record, step_seconds


def queue(log: str, delay: float) -> None:
    """8 tasks on two threads."""
    dask.compute([dask.delayed(planted.work)(log, delay) for _ in range(8)])


def chain(log: str, delay: float) -> None:
    """5 tasks one after another beside one of 1.5 times the length."""
    x = dask.delayed(planted.work)(log, delay)
    for _ in range(4):
        x = dask.delayed(planted.work)(log, delay, x)
    side = dask.delayed(planted.work)(log, delay * 1.5)
    dask.compute(x, side)


@pytest.mark.smoke
def test_queueing_is_execution_on_a_cluster(cluster: Client, tmp_path: Path) -> None:
    """8 tasks of 0.25 s on 2 threads are 1 s on the path, none of it scheduling."""
    reading = read_back(queue, 0.25, tmp_path)
    appears_in(reading, {"execution": reading.seconds("work") / 2})
    busy = reading.extra("busy_s")["execution"]
    assert busy == pytest.approx(reading.seconds("work"), rel=0.05, abs=0.05)


def test_queueing_is_execution_locally(tmp_path: Path) -> None:
    """The same on the threaded scheduler, and 2 s on the synchronous one."""
    with dask.config.set(scheduler="threads", num_workers=2):
        reading = read_back(queue, 0.25, tmp_path)
        appears_in(reading, {"execution": reading.seconds("work") / 2})
    with dask.config.set(scheduler="sync"):
        (tmp_path / "sync").mkdir()
        reading = read_back(queue, 0.1, tmp_path / "sync")
        appears_in(reading, {"execution": reading.seconds("work")})


def bag(log: str, delay: float) -> None:
    """The same as a bag: a partition each."""
    db.from_sequence(range(8), npartitions=8).map(lambda _: planted.work(log, delay)).compute()


@pytest.mark.parametrize("program", [queue, bag])
def test_tasks_that_are_sent_in_a_batch_are_execution_on_processes(
    program: Callable[[str, float], None], pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    """Dask sends six and two of the eight: those before the last of a batch are no scheduling."""
    with dask.config.set(scheduler="processes", pool=pool):
        reading = read_back(program, 0.1, tmp_path)
    took: Counter[int] = Counter()
    for noted in reading.truth:
        took[noted["pid"]] += noted["seconds"]
    appears_in(reading, {"execution": max(took.values())})
    blamed = reading.recording.layers().query("tasks > 0")["wall_s"].sum()
    assert blamed == pytest.approx(max(took.values()), rel=0.1, abs=0.1)


def test_a_chain_beside_a_shorter_branch(cluster: Client, tmp_path: Path) -> None:
    """5 tasks of 0.2 s in a chain beside a branch of 0.3 s are 1 s on the path."""
    reading = read_back(chain, 0.2, tmp_path)
    appears_in(reading, {"execution": 5 / 6.5 * reading.seconds("work")})


def test_a_chain_beside_a_shorter_branch_locally(tmp_path: Path) -> None:
    """The same on threads."""
    with dask.config.set(scheduler="threads", num_workers=2):
        reading = read_back(chain, 0.2, tmp_path)
        appears_in(reading, {"execution": 5 / 6.5 * reading.seconds("work")})


def test_the_users_own_code_is_outside(cluster: Client, tmp_path: Path) -> None:
    """A sleep between two computes is neither Dask nor waiting for it."""

    def program(log: str, delay: float) -> None:
        dask.delayed(planted.identity)(1).compute()
        planted.timed_sleep(log, "own", delay)
        dask.delayed(planted.identity)(2).compute()

    reading = read_back(program, 0.6, tmp_path)
    appears_in(reading, {"outside": reading.seconds("own")})


def test_several_computes_in_a_loop_are_listed_one_by_one(cluster: Client, tmp_path: Path) -> None:
    """Five computations, each with its own hand-over and its own seconds."""

    def program(log: str, delay: float) -> None:
        for _ in range(5):
            dask.delayed(planted.work)(log, delay).compute()

    reading = read_back(program, 0.2, tmp_path)
    appears_in(reading, {"execution": reading.seconds("work")})
    table = reading.recording.computations()
    assert len(table) == 5
    assert table["tasks"].tolist() == [1] * 5
    took = [noted["seconds"] for noted in reading.truth]
    assert table["execution_s"].tolist() == pytest.approx(took, rel=0.1, abs=0.05)
    assert (table["first_task_s"] > 0).all()
    assert table["file"].unique().tolist() == [__file__]


def test_computes_in_a_loop_on_local_schedulers(local_scheduler: str, tmp_path: Path) -> None:
    """The same on each local scheduler."""

    def program(log: str, delay: float) -> None:
        for _ in range(3):
            dask.delayed(planted.work)(log, delay).compute()

    log = str(tmp_path / "log")
    recording = record(lambda: program(log, 0.2))
    assert len(recording.computations()) == 3
    took = [noted["seconds"] for noted in planted.truths(log)]
    assert len(took) == 3
    assert step_seconds(recording, "compute") == pytest.approx(sum(took), rel=0.1, abs=0.05)


def test_spilling_is_execution_with_its_own_steps() -> None:
    """With a memory limit that forces it, writing and reading are spill.write and spill.read."""
    # Little enough for the data, and enough for a process that gives nothing back to the system:
    # one that stays above 80 % of it is paused for ever.
    limit = ("--memory-limit", "500MB")
    with clusters.separate(1, 1, options=limit) as client:
        x = da.random.default_rng(1).random((3000, 3000), chunks=(600, 3000)).persist()
        wait(x)
        y = [da.random.default_rng(i).random((3000, 3000), chunks=(600, 3000)) for i in range(8)]

        def program() -> None:
            kept = client.persist(y)
            wait(kept)
            dask.compute([part.sum() for part in kept])

        recording = record(program)
        steps = recording.steps().set_index("step")
        assert steps["busy_s"]["spill.write"] > 0
        assert steps["bytes"]["spill.write"] > 1e6
        assert steps["busy_s"]["spill.read"] > 0
        values = recording.samples().set_index("name")["value"]
        assert values["memory.spilled"].max() > 0


def spilled(log: str, delay: float) -> None:
    """A result that goes to the worker's disk at once, and is read back for the next task."""
    client = get_client()
    made = client.submit(planted.make_heavy, log, delay, delay, pure=False)
    wait(made)
    assert client.submit(planted.ignore, made, pure=False).result() == 1


@pytest.mark.parametrize("kind", ["separate", "local"])
def test_a_slow_spill_is_execution_by_writing_and_reading(kind: str, tmp_path: Path) -> None:
    """As long as pickling and unpickling took, by their own clock, and nothing elsewhere."""
    apart = clusters.separate(1, 1, options=("--memory-limit", "1GB"))
    with apart if kind == "separate" else clusters.local(1, 1, memory_limit="1GB"):
        reading = read_back(spilled, 0.4, tmp_path)
    written, read = reading.seconds("dump"), reading.seconds("load")
    assert min(written, read) >= 0.4
    appears_in(reading, {"execution": written + read})
    in_steps(reading, {"spill.write": written, "spill.read": read})


def test_the_first_import_on_a_worker_is_named() -> None:
    """A module that a worker imports while it unpickles its first task is the step import."""
    with clusters.separate(1, 1) as client:
        recording = record(lambda: client.submit(planted.size, da.ones(4).compute()).result())
        imports = recording.steps().query("step == 'import'")
        assert imports["wall_s"].sum() > 0.02
        assert "worker" in set(imports["role"])


@pytest.mark.parametrize("call", ["run", "run_on_scheduler"])
def test_what_servers_are_asked_to_run_that_is_no_task_is_outside(
    call: str, cluster: Client, tmp_path: Path
) -> None:
    """It was unexplained; it is the user's own, at their line."""

    def program(log: str, delay: float) -> None:
        assert cluster.submit(planted.identity, 3).result() == 3
        getattr(cluster, call)(planted.work, log, delay)

    reading = read_back(program, 0.5, tmp_path)
    appears_in(reading, {"outside": max(noted["seconds"] for noted in reading.truth)})
    assert own_lines(reading.recording)[0].seconds > 0.4


def test_a_file_that_servers_are_given_is_outside(tmp_path: Path) -> None:
    """They import it, however long that takes them; no task waits for it."""
    log = tmp_path / "log"
    module = tmp_path / "given.py"
    module.write_text(f"import planted; planted.timed_sleep({str(log)!r}, 'load', 0.4)")
    with clusters.separate(1, 1) as client:
        recording = record(lambda: client.upload_file(str(module)))
    took = max(noted["seconds"] for noted in planted.truths(log))
    stages = recording.stages()["wall_s"]
    assert stages["outside"] > took
    assert stages["outside"] > 0.9 * recording.wall


def test_a_cluster_started_in_the_region_is_outside() -> None:
    """Starting a cluster is the user's affair, at their line; what runs on it is recorded."""

    def program() -> None:
        with clusters.local(1, 1) as client:
            assert client.submit(planted.identity, 3).result() == 3
            time.sleep(0.1)

    recording = record(program)
    adds_up(recording)
    assert len(recording.tasks()) == 1
    outside = recording.stages()["wall_s"]["outside"]
    assert outside > 0.8 * recording.wall
    assert flame(recording, stage=Stage.OUTSIDE).own.sum() > 0.5 * outside


def test_threads_that_are_interrupted_were_waited_for() -> None:
    """Ctrl-C while a task runs on the local scheduler: it was the scheduler's loop."""
    over, main = threading.Event(), threading.get_ident()

    def last() -> None:
        over.wait(0.6)
        signal.pthread_kill(main, signal.SIGINT)
        over.wait(30)

    def program() -> None:
        with pytest.raises(KeyboardInterrupt):
            dask.delayed(last)().compute(scheduler="threads")

    recording = record(program)
    over.set()
    assert recording.stages()["wall_s"]["execution"] > 0.5
    assert recording.stages()["share"]["execution"] > 0.8


async def coroutine(log: str, delay: float) -> float:
    """A task whose coroutine sleeps as no coroutine should, and then as one should."""
    planted.work(log, delay)
    await asyncio.sleep(0)
    return planted.work(log, delay)


def coroutines(log: str, delay: float) -> None:
    """Two or three at once on one loop; the scheduler keeps the others until it hears of an end."""
    client = get_client()
    client.gather(client.map(coroutine, [log] * 9, [delay] * 9, pure=False))


@pytest.mark.parametrize("kind", ["separate", "local"])
def test_coroutines_that_keep_their_loop_are_execution(kind: str, tmp_path: Path) -> None:
    """The end of one was told of after the turns of the others, which was communication."""
    with getattr(clusters, kind)(1, 2):
        reading = read_back(coroutines, 0.1, tmp_path)
    appears_in(reading, {"execution": reading.seconds("work")})
