"""Schedulers and workers without stageprof, with another one, with a broken one."""

from __future__ import annotations

import operator
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import cloudpickle  # type: ignore[import-untyped]
import msgpack
import pytest
from distributed import Client

import clusters
import installed
import remains
import stageprof
from stageprof.attach import Attachment
from stageprof_runtime import bootstrap
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


#: A process where nothing is installed gets one version, and then another: as that records, and
#: when it no longer does.
TWO_VERSIONS = (
    installed.HIDE
    + """
import pickle, types
older, newer = (open(path, "rb").read() for path in sys.argv[1:])
def arrives(plugin):
    made, said = pickle.loads(plugin), []
    if type(made).__name__ == "Absent":
        made.setup(types.SimpleNamespace(batched_stream=types.SimpleNamespace(send=said.append)))
        return said[0]["reason"]
    return sys.modules["stageprof_runtime.version"].__version__
print(arrives(older))
from stageprof_runtime import process, ring
leave = process.join("worker", ring.Ring(), ())
print(arrives(newer))
leave()
print(arrives(newer))
print(sum("stageprof_runtime" in getattr(finder, "modules", ()) for finder in sys.meta_path))
print(sys.modules["stageprof_runtime.process"] is not process)
"""
)


def test_another_version_that_was_sent_before_is_replaced_once_it_does_not_record(
    tmp_path: Path,
) -> None:
    modules = msgpack.unpackb(zlib.decompress(bootstrap.sources()))
    modules["stageprof_runtime.version"] = '__version__ = "0.0.1"\n'
    made = "worker", ("s",), "0.0.1", zlib.compress(msgpack.packb(modules))
    older = cloudpickle.dumps(bootstrap._Call(bootstrap._by_value(bootstrap.revive), made))
    (tmp_path / "older").write_bytes(older)
    (tmp_path / "newer").write_bytes(bootstrap.carry("worker", "s"))
    line = [sys.executable, "-c", TWO_VERSIONS, "older", "newer"]
    done = subprocess.run(
        line, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )
    records = "; it records: try again once it has ended"
    assert done.stdout.splitlines() == [
        "0.0.1", f"ImportError: stageprof 0.0.1 is here, {__version__} at the client{records}",
        __version__, "1", "True",
    ], done.stderr  # fmt: skip
