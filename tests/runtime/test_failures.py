"""Failures of real runs: which exception it was is recorded, what it says is not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from dask import compute, delayed
from distributed import Client, LocalCluster, wait

import clusters
import stageprof
from runtime.oddly import Odd
from stageprof_collectors.storage.file import read_frames
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import MARK
from stageprof_runtime.probes import failure

SECRET = "hunter2 of acmecorp"
HERE = Path(__file__).name


def fails(number: int) -> int:
    if number == 3:
        raise KeyError(SECRET)
    return number


def recorded(**options: Any) -> stageprof.Recording:
    """Five tasks of which one fails on a local scheduler."""
    with stageprof.profile(gil=False) as prof, pytest.raises(KeyError):
        compute(*[delayed(fails)(i) for i in range(5)], **options)
    return prof.recording


@pytest.mark.parametrize("scheduler", ["threads", "sync", "processes"])
def test_a_task_that_fails_on_a_local_scheduler_is_named(scheduler: str) -> None:
    failures = recorded(scheduler=scheduler, num_workers=2).failures
    (found,) = failures.raised.values()
    assert (found.type, found.prefix) == ("KeyError", "fails")
    assert failures.said[0].startswith("1 task failed (KeyError, fails at")
    assert Path(found.file).name == HERE


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Two workers in this process."""
    with clusters.inside() as client:
        yield client


def flaky(number: int, seen: list[int]) -> int:
    """Fails for good, or the first time."""
    if number == 7:
        raise ValueError(SECRET)
    if number == 11 and not seen:
        seen.append(number)
        raise OSError(SECRET)
    return number


class Seen(list[int]):
    """Shared by the tasks of this process: pickled by reference."""

    def __reduce__(self) -> Any:
        return seen, ()


_SEEN = Seen()


def seen() -> Seen:
    return _SEEN


@pytest.mark.filterwarnings("ignore")
def test_failed_and_retried_tasks_of_a_cluster_are_named(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "r.stageprof"
    _SEEN.clear()
    with stageprof.profile(path, gil=False) as prof:
        futures = [client.submit(flaky, i, _SEEN, retries=i == 11, pure=False) for i in range(12)]
        wait(futures)

    failures = prof.recording.failures
    (text,) = failures.said
    assert text.startswith(f"1 task failed (ValueError, flaky at {HERE}:")
    assert text.endswith("), 1 run was retried")
    assert sorted(each.type for each in failures.raised.values()) == ["OSError", "ValueError"]
    with read_frames(path) as frames:
        assert SECRET.encode() not in b"".join(each.raw for each in frames)


async def later(number: int) -> int:
    await asyncio.sleep(0)
    raise ZeroDivisionError(number)


@pytest.mark.filterwarnings("ignore")
def test_what_an_async_task_raises_is_told_too(client: Client) -> None:
    with stageprof.profile(gil=False) as prof:
        wait(client.submit(later, 1))
    (text,) = prof.recording.failures.said
    assert text.startswith("1 task failed (ZeroDivisionError, later at")


def odd(_number: int) -> None:
    raise Odd


@pytest.mark.filterwarnings("ignore")
def test_a_class_that_does_not_tell_its_name_has_it_all_the_same(client: Client) -> None:
    with stageprof.profile(gil=False) as prof:
        wait(client.submit(odd, 1))
    assert prof.recording.failures.said[0].startswith("1 task failed (Odd, odd at")
    assert prof.recording.coverage()["disabled"] == []


def bad(_number: int) -> None:
    raise ValueError


@pytest.mark.filterwarnings("ignore")
def test_more_failures_than_are_told_are_counted_all_the_same(client: Client) -> None:
    many = failure.MOST + 20
    with stageprof.profile(gil=False) as prof:
        wait(client.map(bad, range(many)))
    marks = prof.recording.timeline.marks(failure.NAME)
    assert len(marks) == failure.MOST
    assert prof.recording.failures.said[0].startswith(f"{many} tasks failed (ValueError, bad at")


@pytest.mark.filterwarnings("ignore")
def test_each_recording_is_told_anew(client: Client) -> None:
    for _ in range(2):
        with stageprof.profile(gil=False) as prof:
            wait(client.map(bad, range(failure.MOST), pure=False))
        assert len(prof.recording.timeline.marks(failure.NAME)) == failure.MOST


class Emitted:
    """Keeps rows."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def row_of(self, role: str, name: str, row: Any) -> None:
        self.rows.append((role, name, *row))


def test_a_label_has_three_parts_whatever_keys_and_classes_are_called() -> None:
    failure.begin()
    emit: Any = Emitted()
    error = type("a\tb", (Exception,), {})()
    failure.failed(emit, "worker", "tcp://w", ("x\ty" * 100, 1), error)
    failure.failed(emit, "worker", "tcp://w", "key", "no exception")
    ((role, name, table, t, mark, label),) = emit.rows
    assert (role, name, table, mark) == ("worker", "tcp://w", MARK, "task failed")
    assert t <= now_ns()
    assert len(label.split("\t")) == 3
    assert max(map(len, label.split("\t"))) <= failure.LONG


def dies(_number: int) -> None:
    os._exit(1)


@pytest.mark.filterwarnings("ignore")
def test_a_task_that_takes_its_workers_with_it_is_told_by_the_scheduler() -> None:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        stageprof.profile(gil=False) as prof,
    ):
        wait(client.submit(dies, 1))
    assert prof.recording.failures.said == ("1 task failed (KilledWorker, dies)",)
