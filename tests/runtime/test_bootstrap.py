"""Schedulers and workers without stageprof, with another one, with a broken one."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from distributed import Client

import clusters
import installed
import remains
import stageprof
from stageprof.attach import Attachment
from stageprof_runtime.errors import ClusterError
from stageprof_runtime.version import __version__

pytestmark = pytest.mark.cluster


@pytest.fixture
def hidden(tmp_path: Path) -> str:
    return installed.nowhere(tmp_path)


@contextmanager
def cluster(scheduler: str, workers: Sequence[str]) -> Iterator[Client]:
    """A cluster whose processes each run a preload script first ("": none)."""
    with ExitStack() as stack:
        options = ["--port", "0", "--no-dashboard", *_preload(scheduler)]
        process = stack.enter_context(clusters.process("scheduler", *options))
        address = clusters.address_of(process)
        for script in workers:
            stack.enter_context(clusters.worker(address, 1, *_preload(script)))
        client = stack.enter_context(Client(address))
        client.wait_for_workers(len(workers), timeout=60)
        yield client


def _preload(script: str) -> list[str]:
    return ["--preload", script] if script else []


def compute(client: Client, n: int = 50) -> None:
    futures = client.map(operator.neg, range(n), pure=False)
    assert client.gather(futures) == [-i for i in range(n)]


@pytest.mark.smoke
def test_where_stageprof_is_not_installed_it_is_sent_and_leaves_nothing(hidden: str) -> None:
    """F8: without the package, on the scheduler and on workers, of which one joins later."""
    with cluster(hidden, [hidden, hidden]) as client:
        prof = stageprof.profile().start()
        compute(client)
        with clusters.worker(clusters.scheduler_of(client), 1, "--preload", hidden):
            client.wait_for_workers(3, timeout=30)
            compute(client, 150)
            rec = prof.stop()
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    workers = rec.workers()
    assert workers["instrumented"].tolist() == [True] * 3
    assert int(workers["tasks"].sum()) == 200
    assert rec.coverage()["disabled"] == []
    steps = rec.steps()
    assert {"scheduler", "worker"} <= set(steps["role"])
    assert set(rec.timeline.gil.sources.values()) == {"watch"}


@pytest.mark.smoke
def test_a_worker_with_another_version_is_listed_and_goes_on_working(tmp_path: Path) -> None:
    """F8: an older version."""
    other = installed.another(tmp_path, "", "0.0.1")
    with cluster("", ["", other]) as client:
        prof = stageprof.profile().start()
        compute(client)
        with clusters.worker(
            clusters.scheduler_of(client)
        ):  # one that joins later is not stopped by it
            client.wait_for_workers(3, timeout=30)
            compute(client, 150)
            rec = prof.stop()
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    workers = rec.workers().set_index("instrumented")
    assert sorted(workers.index) == [False, True, True]
    assert workers.loc[False, "reason"] == (
        f"ImportError: stageprof 0.0.1 is here, {__version__} at the client"
    )
    assert workers["tasks"].min() > 0
    assert int(workers["tasks"].sum()) == 200


def test_a_worker_with_a_broken_stageprof_joins_late_and_goes_on_working(tmp_path: Path) -> None:
    """F8: a broken import."""
    broken = installed.another(tmp_path, "raise ImportError('libfoo.so: not found')", __version__)
    with cluster("", [""]) as client:
        prof = stageprof.profile().start()
        with clusters.worker(clusters.scheduler_of(client), 1, "--preload", broken):
            client.wait_for_workers(2, timeout=30)
            compute(client, 100)
            rec = prof.stop()
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    workers = rec.workers().set_index("instrumented")
    assert workers.loc[False, "reason"] == "ImportError: libfoo.so: not found"
    assert int(workers["tasks"].sum()) == 100


def test_a_scheduler_with_a_broken_stageprof_is_not_recorded_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    broken = installed.another(tmp_path, "raise ImportError('libfoo.so: not found')", __version__)
    with cluster(broken, [""]) as client:
        with stageprof.profile() as prof:
            compute(client)
        assert remains.everywhere(client) == []
    (problem,) = prof.recording.coverage()["problems"]
    assert "libfoo.so" in problem


@pytest.mark.smoke
def test_a_scheduler_that_forbids_plugins_is_not_recorded_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocked = "distributed.scheduler.blocked-handlers"
    name = f"DASK_{blocked.replace('.', '__').replace('-', '_').upper()}"
    monkeypatch.setenv(name, "['register_scheduler_plugin']")
    with cluster("", [""]) as client:
        with stageprof.profile() as prof:
            compute(client)
        assert remains.of_client(client) == []
    (problem,) = prof.recording.coverage()["problems"]
    assert problem.startswith("cluster not joined")
    assert "register_scheduler_plugin" in problem
    with (
        cluster("", [""]) as client,
        pytest.raises(ClusterError, match=r"does not let stageprof in.*register_scheduler"),
        Attachment(clusters.scheduler_of(client), None),
    ):
        pass
