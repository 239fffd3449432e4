"""A scheduler that was begun with the preload: what it keeps, and that it disturbs nobody."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import click
import psutil
import pytest
from distributed import Client

import clusters
import remains
import stageprof
from preload.shipped import opened
from stageprof.cli import main
from stageprof_runtime import preload

PRELOAD = ("--preload", "stageprof_runtime.preload")


class Recorded(NamedTuple):
    """A cluster with a flight recorder."""

    client: Client
    #: what was given to the recorder
    folder: Path
    scheduler: int

    @property
    def address(self) -> str:
        return clusters.scheduler_of(self.client)


def kept_in(folder: Path) -> tuple[str, str]:
    return "--stageprof-dir", str(folder)


def begun(stack: ExitStack, folder: Path, *options: str, workers: int = 1) -> Recorded:
    """A cluster of Dask's own commands that keeps its segments in a folder."""
    line = ("--port", "0", "--no-dashboard", *PRELOAD, *kept_in(folder), *options)
    scheduler = stack.enter_context(clusters.process("scheduler", *line))
    address = clusters.address_of(scheduler)
    for _ in range(workers):
        stack.enter_context(clusters.worker(address))
    client = stack.enter_context(Client(address))
    client.wait_for_workers(workers, timeout=60)
    return Recorded(client, folder, scheduler.pid)


@pytest.fixture(scope="module")
def flying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with ExitStack() as stack:
        yield begun(stack, tmp_path_factory.mktemp("flight"))


def inc(x: int) -> int:
    return x + 1


def wait_for(started: str, done: str) -> float:
    """Until somebody makes the file; how long that took."""
    began = time.monotonic()
    Path(started).touch()
    while not Path(done).exists():
        time.sleep(0.01)
    return time.monotonic() - began


def dumped(what: Recorded | Path, path: Path) -> stageprof.Recording:
    address = what.address if isinstance(what, Recorded) else str(what)
    assert main(["attach", address, "--dump", "-o", str(path), "--no-summary"]) == 0
    return stageprof.open(path)


def keys(recording: stageprof.Recording, prefix: str) -> int:
    """How many tasks of a prefix a recording has."""
    return int((recording.tasks()["prefix"] == prefix).sum())


@pytest.mark.cluster
@pytest.mark.smoke
def test_the_dump_holds_what_was_done_before_it(
    flying: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With every task, every worker, and an account that adds up."""
    futures = flying.client.map(inc, range(50), key="early", pure=False)
    assert flying.client.gather(futures) == list(range(1, 51))
    recording = dumped(flying, tmp_path / "f.stageprof")

    assert recording.complete
    assert keys(recording, "early") == 50
    assert recording.stages()["wall_s"].sum() == pytest.approx(recording.wall)
    coverage = recording.coverage()
    assert coverage["batches_lost"] == 0
    assert coverage["dropped"] == {}
    assert coverage["instrumented"] == coverage["workers"] == 1
    assert coverage["flight"]["address"] == flying.address
    assert not coverage["flight"]["overwritten"]
    assert recording.summary.label.startswith("Flight recording 2")
    assert "the cluster is no older" in capsys.readouterr().err


@pytest.mark.cluster
def test_a_worker_that_joins_later_is_recorded(flying: Recorded, tmp_path: Path) -> None:
    """Also one that has the preload itself, which does nothing there."""
    with clusters.worker(flying.address, 1, *PRELOAD):
        flying.client.wait_for_workers(2, timeout=60)
        futures = flying.client.map(inc, range(40), key="joined", pure=False)
        flying.client.gather(futures)
        recording = dumped(flying, tmp_path / "f.stageprof")
        assert keys(recording, "joined") == 40
        assert recording.coverage()["instrumented"] == 2
    clusters.soon(lambda: len(flying.client.scheduler_info()["workers"]) == 1)


@pytest.mark.cluster
def test_a_client_that_profiles_meanwhile_and_the_recorder_see_the_same(
    flying: Recorded, tmp_path: Path
) -> None:
    with stageprof.profile(client=flying.client, gil=False) as prof:
        flying.client.gather(flying.client.map(inc, range(30), key="both", pure=False))
    flying.client.gather(flying.client.map(inc, range(20), key="after", pure=False))
    kept, own = dumped(flying, tmp_path / "f.stageprof"), prof.recording

    assert (keys(own, "both"), keys(own, "after")) == (30, 0)
    assert (keys(kept, "both"), keys(kept, "after")) == (30, 20)
    assert own.coverage()["batches_lost"] == kept.coverage()["batches_lost"] == 0
    both = kept.tasks()[lambda tasks: tasks["prefix"] == "both"]
    assert (both["stop_s"] > both["start_s"]).all()
    clusters.soon(lambda: sessions(flying) == [], 10)


def sessions(flying: Recorded) -> list[str]:
    """Plugins and operations on scheduler and workers that are of a client's session."""
    return [name for name in remains.everywhere(flying.client) if re.match(r"stageprof-\d", name)]


def numbers(flying: Recorded) -> list[int]:
    """Those of the segments that are there."""
    return sorted(int(path.stem) for path in (flying.folder / "current").glob("*.segment"))


@pytest.mark.cluster
def test_a_task_that_runs_since_before_the_window_is_in_it(tmp_path: Path) -> None:
    """Where the minutes are few; the account is then of the window, and has room for no more.

    Then the scheduler is killed, and its segments are still a recording.
    """
    started, done = tmp_path / "started", tmp_path / "done"
    with ExitStack() as stack:
        flying = begun(stack, tmp_path / "flight", "--stageprof-minutes", "0.02")
        future = flying.client.submit(wait_for, str(started), str(done), key="long-1")
        clusters.soon(started.exists)
        # What had to be told of it is in the next segment but one, for each is of half a second.
        told = numbers(flying)[-1] + 3
        clusters.soon(lambda: numbers(flying)[0] > told)
        done.touch()
        took = future.result()
        recording = dumped(flying, tmp_path / "f.stageprof")
        psutil.Process(flying.scheduler).kill()

    task = recording.tasks().set_index("key").loc["long-1"]
    assert task["duration_s"] == pytest.approx(took, abs=0.2)
    assert task["start_s"] < 0
    assert recording.coverage()["flight"]["overwritten"]
    assert recording.wall < took
    stages = recording.stages()["wall_s"]
    assert stages.sum() == pytest.approx(recording.wall)
    assert stages.idxmax() == "execution"
    assert recording.workers()["instrumented"].all()
    left = dumped(flying.folder, tmp_path / "left.stageprof")
    assert left.complete
    assert left.coverage()["flight"]["address"] == recording.coverage()["flight"]["address"]


@pytest.mark.cluster
@pytest.mark.nightly
def test_a_size_too_small_for_the_minutes_leaves_a_part_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, ran = tmp_path / "flight", 0
    with ExitStack() as stack:
        flying = begun(stack, folder, "--stageprof-size", "1 MB")
        while not numbers(flying) or numbers(flying)[0] == 1:
            flying.client.gather(flying.client.map(inc, range(1000), pure=False))
            ran += 1000
            assert sum(path.stat().st_size for path in folder.rglob("*.segment")) <= 1_000_000
        recording = dumped(flying, tmp_path / "f.stageprof")

    assert "--stageprof-size" in capsys.readouterr().err
    assert recording.complete
    assert 0 < len(recording.tasks()) < ran
    assert recording.coverage()["batches_lost"] == 0
    assert recording.workers()["instrumented"].all()


@pytest.mark.cluster
def test_a_scheduler_that_ends_leaves_nothing_but_the_folder_it_was_given(tmp_path: Path) -> None:
    """And without a folder nothing at all; a folder that is taken is no reason not to start."""
    flight, scratch = tmp_path / "flight", tmp_path / "scratch"
    plain = ("scheduler", "--port", "0", "--no-dashboard", *PRELOAD)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("DASK_TEMPORARY_DIRECTORY", str(scratch))
        with clusters.process(*plain) as one, clusters.process(*plain, *kept_in(flight)) as two:
            clusters.address_of(one)
            clusters.address_of(two)
            clusters.soon(lambda: len(list(tmp_path.rglob("*.segment"))) == 2)
            with clusters.process(*plain, *kept_in(flight)) as third:
                assert clusters.address_of(third)
                assert third.stderr is not None
                said = next(line for line in third.stderr if "distributed.stageprof" in line)
    assert f"no flight recorder: another scheduler records to {flight}" in said
    assert list(scratch.rglob("*stageprof*")) == []
    assert opened(flight)[0].store.places[0].role == "scheduler"


@pytest.mark.cluster
def test_without_a_recorder_the_dump_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And leaves no trace in the scheduler's log."""
    with clusters.process("scheduler", "--port", "0", "--no-dashboard") as scheduler:
        address = clusters.address_of(scheduler)
        out = str(tmp_path / "x.stageprof")
        assert main(["attach", address, "--dump", "-o", out]) == 2
        scheduler.terminate()
        assert scheduler.stderr is not None
        log = scheduler.stderr.read()
    err = capsys.readouterr().err
    assert err.startswith(f"stageprof: no flight recorder runs at {address}; expected ")
    assert "dask scheduler --preload stageprof_runtime.preload" in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    assert "No handler" not in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(
            ("tcp://127.0.0.1:1", "--dump", "-o", "x"),
            "no scheduler at tcp://127.0.0.1:1",
            marks=pytest.mark.nightly,  # it waits for four seconds
        ),
        ((".", "--dump", "-o", "x"), ". holds no flight recording"),
        (("tcp://127.0.0.1:1", "--dump", "-o", "x", "--for", "1s"), "--dump with --for"),
    ],
    ids=["nobody", "empty folder", "both"],
)
def test_a_dump_of_nothing_is_one_line_and_status_2(
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["attach", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"stageprof: {said}")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", ["many", "-1", "999 kB", ""])
def test_a_size_that_is_none_is_told(size: str) -> None:
    with pytest.raises(click.BadParameter, match="expected 1 MB or more"):
        preload.Bytes().convert(size, None, None)


def test_where_stageprof_is_not_whole_the_preload_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dask's command line shows such an exception as one line."""
    monkeypatch.setitem(sys.modules, "stageprof_runtime.flight.recorder", None)
    monkeypatch.delitem(sys.modules, "stageprof_runtime.preload")
    with pytest.raises(click.ClickException, match="cannot record this cluster"):
        __import__("stageprof_runtime.preload")


async def _never(server: object) -> None:
    raise AssertionError("it was started")


def test_on_anything_but_a_scheduler_the_preload_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preload, "Flight", _never)
    setup = preload.dask_setup.callback
    assert setup is not None
    with pytest.raises(StopIteration):
        setup(SimpleNamespace(), 10.0, 10**6, "", watch_gil=False).send(None)
