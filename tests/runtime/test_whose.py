"""Each task belongs to the graph that brought it, whatever else its scheduler is working on."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import pandas as pd
import pytest
from distributed import Client, as_completed

import clusters
import planted
import stageprof
from stageprof_collectors.account.first_task import first_task
from stageprof_ui.columns import handover

#: Seconds of a task: long enough that those which come meanwhile stand in line.
DELAY = 0.03


@pytest.fixture(scope="module", params=["separate", "local"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Client]:
    """Two workers with a thread each: in processes of their own, and as LocalCluster."""
    separate = request.param == "separate"
    with Client(request.getfixturevalue("standing")) if separate else clusters.local() as client:
        yield client


def computations(program: Callable[[], object]) -> pd.DataFrame:
    """What is said of a program's computations; it must agree with itself."""
    with stageprof.profile() as prof:
        program()
    return consistent(prof.recording)


def consistent(recording: stageprof.Recording) -> pd.DataFrame:
    """The table of computations, which sums to all runs; what else is said of them agrees."""
    table = recording.computations()
    assert table["tasks"].sum() == len(recording.timeline.runs["run"]), table
    assert table["graph_tasks"].sum() == recording.tasks()["key"].nunique(), table
    assert (table["first_task_s"].notna() == (table["tasks"] > 0)).all(), table
    rows = recording.timeline.graph_rows.tolist()
    assert [Counter(rows)[i] for i in range(len(table))] == table["tasks"].tolist()
    assert handover.graphs(recording)["tasks"].tolist() == table["tasks"].tolist()
    first = first_task(recording)
    assert first is not None
    assert first.of == len(table)
    assert 0 < first.seconds <= table["first_task_s"].max() + 1e-9
    return table


@pytest.mark.smoke
def test_submits_have_a_task_each_and_a_map_has_its_own(cluster: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def program() -> None:
        some = [cluster.submit(planted.work, log, DELAY, pure=False) for _ in range(10)]
        cluster.gather([*some, *cluster.map(planted.work, [log] * 6, [DELAY] * 6, pure=False)])

    table = computations(program)
    assert table["tasks"].tolist() == [1] * 10 + [6]
    assert table["graph_tasks"].tolist() == [1] * 10 + [6]


@pytest.mark.smoke
def test_futures_as_arguments_are_no_tasks_of_the_graph(cluster: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def program() -> None:
        raw = [cluster.submit(planted.work, log, DELAY, pure=False) for _ in range(6)]
        more = [cluster.submit(planted.identity, one, pure=False) for one in raw]
        cluster.gather([*cluster.map(planted.identity, raw, pure=False), *more])

    table = computations(program)
    assert table["tasks"].tolist() == [1] * 12 + [6]
    assert table["graph_tasks"].tolist() == [1] * 12 + [6]


def test_submits_while_others_are_completed(cluster: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def program() -> None:
        done = as_completed(cluster.map(planted.work, [log] * 6, [DELAY] * 6, pure=False))
        cluster.gather([cluster.submit(planted.identity, one, pure=False) for one in done])

    table = computations(program)
    assert table["tasks"].tolist() == [6] + [1] * 6


def test_threads_that_compute_at_once(cluster: Client, tmp_path: Path) -> None:
    """As many tasks as no other thread's."""
    log = str(tmp_path / "log")

    def compute(tasks: int) -> None:
        dask.compute(*(dask.delayed(planted.work)(log, DELAY) for _ in range(tasks)))

    def program() -> None:
        threads = [threading.Thread(target=compute, args=(n,)) for n in (2, 3, 4, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    table = computations(program)
    assert sorted(table["tasks"]) == [2, 3, 4, 5]
    assert (table["tasks"] == table["wanted"]).all()


def test_a_compute_of_what_is_being_persisted(cluster: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def program() -> None:
        parts = cluster.persist([dask.delayed(planted.work)(log, DELAY) for _ in range(8)])
        dask.delayed(planted.ignore)(*parts).compute()

    table = computations(program)
    assert table["tasks"].tolist() == [8, 1]
    assert table["graph_tasks"].tolist() == [8, 1]


def test_tasks_that_launch_tasks(cluster: Client, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def program() -> None:
        cluster.gather(cluster.map(planted.launches, [log] * 4, [DELAY] * 4, pure=False))

    table = computations(program)
    assert table["tasks"].tolist() == [4, 1, 1, 1, 1]


def test_an_async_client_that_submits(standing: str, tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    async def program(address: str) -> Any:
        async with Client(address, asynchronous=True) as client:
            async with stageprof.profile(client=client) as prof:
                some = [client.submit(planted.work, log, DELAY, pure=False) for _ in range(8)]
                await client.gather([*some, *client.map(planted.identity, some, pure=False)])
            return prof.recording

    recording = asyncio.run(program(standing))
    assert consistent(recording)["tasks"].tolist() == [1] * 8 + [8]
