"""A private name of Dask is gone: one probe is off, the recording says so, and nothing fails.

The names are read from the code, so that a new one is tested without being written down here.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import pytest
from dask import delayed
from distributed import Client, LocalCluster

import clusters
import stageprof
import stageprof_runtime
from stageprof_collectors.recording import Recording
from stageprof_runtime import (
    arrival,
    compat,
    probes,
    process,
    scheduler_plugin,
    session,
    worker_plugin,
)
from stageprof_runtime.measured import LOOKERS, MEASURED, unmeasured
from stageprof_runtime.probes import arrivals, clients, communication, execution, loops, stacks
from stageprof_runtime.ring import Ring
from stageprof_runtime.stage import STEP

RUNTIME = Path(stageprof_runtime.__file__).parent

#: What looks places up, and what wraps a method of ours.
NO_READERS = {"place", "forgettable"}
#: What reads a private attribute of an object that Dask hands over.
READERS = sorted(
    name
    for name, value in inspect.getmembers(compat, inspect.isfunction)
    if value.__module__ == compat.__name__ and name not in NO_READERS and not name.startswith("_")
)
#: Only where a cluster is asked something before a run, where it or its tasks are in processes of
#: their own, or where these need resources: not in these programs.
ELSEWHERE = {
    "asked_of", "is_open", "patience_s", "ran_ns", "resources", "saturation", "underway", "wanted",
    "written",
}  # fmt: skip


def inc(x: int) -> int:
    return x + 1


def programs() -> list[Any]:
    """A little of everything, on whatever scheduler there is."""
    many = [delayed(inc, pure=True)(i) for i in range(4)]
    return [
        float(da.ones((20, 20), chunks=10).sum().compute()),
        dask.compute(*many),
        db.from_sequence(range(6), npartitions=2).map(inc).sum().compute(),
    ]


PLACES = list(compat._PLACES)
#: Every time each name is missing where probes are installed; in a whole run some, all at night.
SOME = [p if i % 9 == 0 else pytest.param(p, marks=pytest.mark.nightly) for i, p in
        enumerate(PLACES)]  # fmt: skip

EXPECTED = [400.0, (1, 2, 3, 4), 21]


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What failed in one test is not told in the next."""
    process.failed.clear()
    yield
    process.failed.clear()


@pytest.fixture(params=PLACES)
def gone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """One place after the other that this version of Dask does not have."""
    where = str(request.param)
    module, path, name = compat._PLACES[where]
    monkeypatch.setitem(compat._PLACES, where, (module, path, f"{name}_of_another_version"))
    return where


def run(client: Client | None, until: Callable[[], Any] = lambda: True) -> Recording:
    """Everything under `profile`: the right results, and nothing is left."""
    scheduler: Any = "threads" if client is None else client
    with dask.config.set(scheduler=scheduler), stageprof.profile(gil=False) as prof:
        assert programs() == EXPECTED
        if client is not None:
            assert client.gather(client.map(inc, range(3))) == [1, 2, 3]
        clusters.soon(until)
    clusters.soon(lambda: process.installed() == [], 5)
    return prof.recording


def says_so(recording: Recording) -> None:
    coverage = recording.coverage()
    assert any("_of_another_version" in text for text in coverage["disabled"])
    assert coverage["unmeasured"] != []
    assert recording.wall > 0
    assert abs(recording.stages()["wall_s"].sum() - recording.wall) < 1e-6


@pytest.mark.smoke
def test_without_one_its_probes_are_off_and_the_others_on(gone: str) -> None:
    lists = [session.PROBES, scheduler_plugin.PROBES, worker_plugin.PROBES]
    roles = ("client", "scheduler", "worker")
    leaves = [process.join(r, Ring(), p) for r, p in zip(roles, lists, strict=True)]
    there = process.installed()
    for leave in leaves:
        leave()

    off = {probe for probe, places in _uses().items() if gone in places}
    assert process.failed
    assert set(process.failed) <= off
    assert not set(process.failed) & set(there)
    assert len(set(there) | set(process.failed)) == len({*map(_name, chain(*lists)), *RINGS})
    assert unmeasured(f"{probe}: gone" for probe in process.failed)
    assert process.installed() == []


RINGS = ("ring:client", "ring:scheduler", "ring:worker")


@pytest.mark.parametrize("gone", SOME, indirect=True)
def test_without_one_a_cluster_computes_and_the_recording_says_what_it_lacks(
    gone: str, client: Client
) -> None:
    recording = run(client)
    says_so(recording)
    assert recording.coverage()["workers"] == 1


@pytest.mark.nightly
def test_without_one_local_schedulers_compute(gone: str) -> None:
    recording = run(None)
    off = {probe for probe, places in _uses().items() if gone in places}
    if off & set(map(_name, session.PROBES)):
        says_so(recording)


@pytest.mark.parametrize("name", READERS)
def test_without_an_attribute_a_cluster_computes(
    name: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = withdraw(monkeypatch, name)
    recording = run(client, until=lambda: asked or name in ELSEWHERE)
    if "failed" in asked:  # the others have an answer of their own for that
        coverage = recording.coverage()
        lost = {k: v for k, v in coverage["dropped"].items() if v}
        assert coverage["disabled"] or coverage["problems"] or lost


def withdraw(monkeypatch: pytest.MonkeyPatch, name: str) -> set[str]:
    """What Dask hands over has no attributes any more; returns how asking for them ended."""
    original, asked = getattr(compat, name), set()

    def missing(_: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            answer = original(object(), *args, **kwargs)
        except AttributeError:
            asked.add("failed")
            raise
        asked.add("answered")
        return answer

    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("stageprof_runtime"):
            for attribute, value in list(vars(module).items()):
                if value is original:
                    monkeypatch.setattr(module, attribute, missing)
    return asked


def test_a_probe_that_can_be_installed_again_is_no_longer_said_to_be_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(compat._PLACES, "expr.optimize", ("dask._expr", "Expr", "no_such"))
        assert run(None).coverage()["unmeasured"] == [
            "expr",
            "unused data",
            "what plans have in common",
            "what is fused",
        ]
    assert run(None).coverage()["unmeasured"] == []


# -- the tables ---------------------------------------------------------------------------------


def _uses() -> dict[str, set[str]]:
    """Probe -> private places that its module names, or what it asks for when modules arrive."""
    found: dict[str, set[str]] = {}
    for probe in _every_probe():
        module = inspect.getmodule(probe)
        assert module is not None
        source = inspect.getsource(module)
        source += inspect.getsource(arrival) if hasattr(module, "arrived") else ""
        found[_name(probe)] = {where for where in PLACES if f'"{where}"' in source}
    return found


def _name(probe: Any) -> str:
    """As `process` calls it."""
    return f"{probe.__module__.rpartition('.')[2]}.{probe.__name__}"


def _every_probe() -> list[Callable[..., Any]]:
    lists = [*session.PROBES, *scheduler_plugin.PROBES, *worker_plugin.PROBES]
    made = [communication.Serving, execution.Actors, arrivals.Arrivals]
    return [*lists, *made, clients.install]


def test_every_probe_says_what_is_lacking_without_it() -> None:
    found = set()
    for info in pkgutil.iter_modules(probes.__path__):
        tree = ast.parse((RUNTIME / "probes" / f"{info.name}.py").read_text())
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and _takes_emit(node):
                found.add(f"{info.name}.{node.name}")
            if isinstance(node, ast.ClassDef) and any(_is_probe(method) for method in node.body):
                found.add(f"{info.name}.{node.name}")
    assert found == set(MEASURED)


@pytest.mark.parametrize("name", [stacks.NAME, loops.NAME, "sampler"])
def test_a_looker_that_is_off_is_named_and_one_that_looks_more_seldom_is_not(name: str) -> None:
    assert unmeasured([f"{name}: over its time budget"]) == list(LOOKERS[name])
    assert unmeasured([f"{name}: sampled"]) == []


def _takes_emit(node: ast.FunctionDef) -> bool:
    return node.name.startswith("install") and bool(node.args.args)


def _is_probe(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.FunctionDef)
        and node.name == "__call__"
        and [arg.arg for arg in node.args.args] == ["self", "emit"]
    )


def test_steps_that_are_named_exist_and_none_is_forgotten() -> None:
    named = {what.partition(" ")[0] for many in MEASURED.values() for what in many}
    # Told from other events, not by a probe of their own.
    derived = {"place", "idle", "wait.thread", "wait.resource", "tokenize", "meta", "task.send"}
    assert set(STEP) - named - derived == set()


PRIVATE = [
    (path.relative_to(RUNTIME).as_posix(), name)
    for path in sorted(RUNTIME.rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text()))
    for name in (
        [f"{node.module}.{alias.name}" for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module
        else [alias.name for alias in node.names]
        if isinstance(node, ast.Import)
        else []
    )
    if name.startswith(("dask.", "distributed."))
    and any(part.startswith("_") for part in name.split("."))
]


def test_private_names_are_imported_in_one_module_only() -> None:
    assert [place for place in PRIVATE if place[0] != "compat.py"] == []


MISSING_AT_IMPORT = """
import sys, dask, dask.local, distributed, dask._task_spec, dask.threaded, dask.multiprocessing
import dask.array as da
from dask import delayed
if {module!r} == "dask._task_spec":
    sys.modules["dask._task_spec"] = None
else:
    delattr(sys.modules[{module!r}], {name!r})
import stageprof
with stageprof.profile(gil=False) as prof:
    {repair}
    results = [delayed(sum)([1, i]).compute(scheduler=s) for i, s in enumerate(("threads", "sync"))]
assert results == [1, 2], results
print(prof.recording.wall > 0)
"""


@pytest.mark.parametrize("name", ["identity", "SynchronousExecutor", "GraphNode"])
def test_stageprof_is_imported_and_records_without_what_it_imports(name: str) -> None:
    """Names that are read when stageprof is imported; Dask itself gets its own back."""
    module = "dask._task_spec" if name == "GraphNode" else "dask.local"
    repair = (
        "sys.modules['dask._task_spec'] = dask._task_spec"
        if name == "GraphNode"
        else f"dask.local.{name} = kept"
    )
    keep = "" if name == "GraphNode" else f"kept = dask.local.{name}\n"
    code = MISSING_AT_IMPORT.format(module=module, name=name, repair=repair)
    code = code.replace("if ", f"{keep}if ", 1)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.stdout.strip() == "True", done.stderr
