"""Whatever was recorded has a replay, and the unchanged one is near the truth."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, as_completed, wait

import clusters
import planted
from replay.programs import nap, sleep
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.replay import Change
from stageprof_runtime.stage import Stage
from truth import record

GOLDEN = Path(__file__).parents[1] / "data" / "golden-1.0.stageprof"

pytestmark = pytest.mark.filterwarnings("ignore:timed out waiting on channel")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with clusters.local(2, 1) as client:
        yield client


def asked(recording: Recording) -> None:
    """Every question has an answer within the wall time."""
    replay, wall = recording.replay, recording.wall
    some: dict[str, Change] = {
        "nothing": Change(),
        "halved": Change(compute=0.5, lead=0.5, fetch=0.5, lag=0.5, serial=lambda _: 0.5),
        "gone": Change(compute=0.0, lead=0.0, fetch=0.0, lag=0.0, serial=lambda _: 0.0),
        "threads": Change(threads=3, workers=3),
    }
    for change in some.values():
        low, high = replay.saving(change)
        assert 0 <= low <= high <= wall
        least, most = replay.wall(change)
        assert 0 <= least <= most
    for stage in Stage:
        assert replay.at_most(stage) >= 0
    assert 0 <= replay.error <= 1


def near(recording: Recording) -> None:
    """The unchanged replay is within 5 % of the recorded wall time."""
    asked(recording)
    assert recording.replay.errors[0] <= 0.05, recording.replay.errors


def one_by_one(client: Client) -> None:
    futures = [client.submit(sleep, 0.05, pure=False) for _ in range(8)]
    assert len(client.gather(futures)) == 8


def as_they_come(client: Client) -> None:
    again = as_completed(client.map(sleep, [0.05, 0.1, 0.02, 0.07], pure=False))
    for i, future in enumerate(again):
        future.result()
        if i < 4:
            again.add(client.submit(nap, 0.05, pure=False))


def in_flight(client: Client) -> None:
    first = client.persist([dask.delayed(sleep)(0.1) for _ in range(4)])
    second = client.persist([dask.delayed(nap)(0.05, part) for part in first])
    wait([*first, *second])


def launching(client: Client) -> None:
    outer = [client.submit(planted.launches, "/dev/null", 0.2, pure=False) for _ in range(2)]
    client.gather(outer)


def from_threads(client: Client) -> None:
    def compute() -> None:
        dask.delayed(sleep)(0.2).compute()

    threads = [threading.Thread(target=compute) for _ in range(2)]
    for thread in threads:
        thread.start()
    dask.delayed(nap)(0.1).compute()
    for thread in threads:
        thread.join()


def acting(client: Client) -> None:
    counter: Any = client.submit(planted.Counter, actor=True).result()
    assert counter.add("/dev/null", 0.1).result() == 1


def scattering(client: Client) -> None:
    data = client.scatter(list(range(1000)))
    assert client.submit(len, data).result() == 1000


def stealing(client: Client) -> None:
    first = next(iter(client.scheduler_info()["workers"]))
    options: dict[str, Any] = {"workers": [first], "allow_other_workers": True, "pure": False}
    wait(client.map(sleep, [0.2] * 8, **options))


PROGRAMS: dict[str, Callable[[Client], None]] = {
    f.__name__: f
    for f in (
        one_by_one, as_they_come, in_flight, launching, from_threads, acting, scattering, stealing
    )
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_all_kinds_are_replayed(cluster: Client, name: str) -> None:
    near(record(lambda: PROGRAMS[name](cluster)))


def test_a_task_that_waits_for_one_it_launched_gets_faster_with_it(cluster: Client) -> None:
    recording = record(lambda: launching(cluster))
    low, high = recording.replay.saving(Change(compute=0.5))

    assert (low, high) == pytest.approx((0.1, 0.1), abs=0.05)


def test_retries_are_replayed(cluster: Client, tmp_path: Path) -> None:
    def program() -> None:
        marker = str(tmp_path / "failed")
        task = cluster.submit(planted.fail_once, marker, "/dev/null", 0.2, retries=1, pure=False)
        assert task.result() == 1

    near(record(program))


@pytest.mark.nightly
def test_a_lost_worker_is_replayed(tmp_path: Path) -> None:
    with clusters.separate(2, 1) as client:

        def program() -> None:
            marker = str(tmp_path / "died")
            task = client.submit(planted.die_once, marker, "/dev/null", 0.3, pure=False)
            assert task.result() == 1

        near(record(program))


@pytest.mark.parametrize("scheduler", ["threads", "sync", "processes"])
def test_local_schedulers_are_replayed(scheduler: str) -> None:
    def program() -> None:
        for _ in range(2):
            parts = [dask.delayed(sleep)(0.02) for _ in range(9)]
            dask.delayed(nap)(0.05, parts).compute()

    with dask.config.set(scheduler=scheduler, num_workers=2):
        near(record(program))


def test_a_golden_recording_is_replayed() -> None:
    asked(Recording.open(GOLDEN))


def test_an_incomplete_recording_is_replayed(cluster: Client, tmp_path: Path) -> None:
    """Cut off anywhere, it has a replay still."""
    import stageprof

    path = tmp_path / "whole.stageprof"
    with stageprof.profile(path):
        one_by_one(cluster)
        in_flight(cluster)
    whole = path.read_bytes()
    for part in (0.3, 0.5, 0.7, 0.9):
        cut = tmp_path / f"{part}.stageprof"
        cut.write_bytes(whole[: int(len(whole) * part)])
        asked(Recording.open(cut))
