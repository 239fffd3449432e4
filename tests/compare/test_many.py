"""Many recordings are measured by a cluster that is active, with the same result as without."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import stageprof
from benchmarks.generate import generate
from stageprof import comparison
from stageprof import spread as spreading
from stageprof.comparison import measured
from stageprof_collectors.findings.settings import DEFAULTS
from stageprof_runtime.errors import NotARecording

NUMBER = spreading.MANY


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many recordings as are worth a cluster, of two different runs."""
    folder = tmp_path_factory.mktemp("many")
    for seed in (0, 1):
        generate(folder / f"{seed:03}.stageprof", tasks=30, workers=1, seed=seed)
    for number in range(2, NUMBER):
        shutil.copy(folder / f"{number % 2:03}.stageprof", folder / f"{number:03}.stageprof")
    return folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    """One in this process: what its worker does is counted by its scheduler."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"
    ) as client:
        yield client


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were measured in this process without the cluster."""
    here: list[str] = []
    one = comparison._one

    def noted(source: str, *args: Any) -> Any:
        here.append(source)
        return one(source, *args)

    monkeypatch.setattr(comparison, "_one", noted)
    return here


def test_the_same_is_measured_in_the_same_order(
    pool: Path, cluster: Client, asked: list[str]
) -> None:
    """And nothing of it here; the progress comes to all of them."""
    told: list[tuple[int, int]] = []
    said: list[str] = []
    found = measured(pool, "baseline", DEFAULTS, lambda i, n, _: told.append((i, n)), said.append)

    assert (asked, said) == ([], [])
    assert told == [(i + 1, NUMBER) for i in range(NUMBER)]
    paths = [pool / f"{number:03}.stageprof" for number in range(NUMBER)]
    assert [each.file for each in found] == [str(path) for path in paths]
    alone = [measured(path, "baseline")[0] for path in paths[:2]]
    # by their text: a number that is none is not itself again when it has travelled
    assert list(map(repr, found[:2])) == list(map(repr, alone))


def test_a_comparison_is_the_same(
    pool: Path, cluster: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = stageprof.compare(pool, pool)
    monkeypatch.setattr(spreading, "MANY", NUMBER + 1)
    here = stageprof.compare(pool, pool)

    assert str(there) == str(here)


def test_few_are_read_here(pool: Path, cluster: Client, asked: list[str]) -> None:
    measured([pool / "000.stageprof"], "baseline")

    assert len(asked) == 1


def test_files_that_workers_do_not_see_are_read_here_and_it_is_said(
    pool: Path, cluster: Client, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another file of the same name counts as not seen."""
    seen = spreading._seen
    other = {str(pool / "003.stageprof"): None, str(pool / "005.stageprof"): 1}

    def elsewhere(path: str) -> Any:
        file = seen(path)
        if path not in other or file is None:
            return file
        return file._replace(size=1) if other[path] else None

    monkeypatch.setattr(spreading, "_seen", _once(elsewhere, seen, NUMBER))
    said: list[str] = []
    found = measured(pool, "baseline", DEFAULTS, None, said.append)

    assert [Path(each.file).name for each in found] == [f"{n:03}.stageprof" for n in range(NUMBER)]
    assert sorted(asked) == sorted(other)
    assert said == ["2 recordings could not be read on the cluster, but here"]


def _once(first: Callable[[str], Any], then: Callable[[str], Any], calls: int) -> Any:
    """`first` for so many calls, which are those of this process, then `then`."""
    count = iter(range(calls))

    def chosen(path: str) -> Any:
        return (first if next(count, None) is not None else then)(path)

    return chosen


def test_a_file_that_is_none_is_the_same_error(pool: Path, cluster: Client, tmp_path: Path) -> None:
    folder = shutil.copytree(pool, tmp_path / "pool")
    (folder / "007.stageprof").write_bytes(b"no recording")

    with pytest.raises(NotARecording, match="007"):
        measured(folder, "baseline", DEFAULTS, None, lambda _: None)


def test_it_does_not_record_itself(pool: Path, cluster: Client, asked: list[str]) -> None:
    """While somebody records, here or the cluster, what a comparison does would be in it."""
    with stageprof.profile() as prof:
        measured(pool, "baseline")

    assert len(asked) == NUMBER
    assert prof.recording.tasks().empty


def test_a_cluster_that_somebody_else_records_is_left_alone(
    pool: Path, cluster: Client, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spreading, "_OURS", "")  # every plugin of a scheduler begins so
    said: list[str] = []
    measured(pool, "baseline", DEFAULTS, None, said.append)

    assert len(asked) == NUMBER
    assert said == ["the cluster is being recorded, so recordings are read in this process"]


def test_a_cluster_without_workers_is_not_waited_for(pool: Path, asked: list[str]) -> None:
    with Client(processes=False, n_workers=0, dashboard_address=":0"):
        measured(pool, "baseline")

    assert len(asked) == NUMBER


def test_a_task_does_not_wait_for_others(pool: Path, cluster: Client, asked: list[str]) -> None:
    cluster.submit(measured, str(pool), "baseline", pure=False).result(timeout=60)

    assert len(asked) == NUMBER


def test_a_cluster_that_fails_is_said_and_recordings_are_read_here(
    pool: Path, cluster: Client, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    """A scheduler of another Python cannot load what it is asked to run."""

    def fails(*_: Any, **__: Any) -> Any:
        raise TypeError("code() takes at most 16 arguments")

    monkeypatch.setattr(cluster, "run_on_scheduler", fails)
    said: list[str] = []
    sources = [str(path) for path in sorted(pool.iterdir())]
    assert spreading.spread(sources, DEFAULTS, None, said.append) == {}
    assert "reads no recordings" in said[0]
    assert "code() takes" in said[0]
