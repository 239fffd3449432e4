"""Workers that cannot load what they are sent: Dask closes them, and says so on their terminals.

A scheduler that cannot raises an exception in the client instead.
"""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

import stageprof
from stageprof_collectors.findings.finding import Severity
from stageprof_runtime.event import MARK
from stageprof_runtime.lines import LIBRARY, USER, kind
from stageprof_runtime.probes import failure

MODULE = "only_the_client_has_this"
SECRET = "hunter2 of acmecorp"


class Rings:
    """What a probe emits with: keeps the rows."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, Any]] = []

    def row(self, role: str, row: Any) -> None:
        self.rows.append((role, row))


def test_a_module_that_workers_lack_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both workers go at once, and soon after the session has come: what they said is kept."""
    gone = threading.Semaphore(0)

    def heard(event: tuple[float, Any]) -> None:
        if event[1].get("action") == "remove-worker":
            gone.release()

    (tmp_path / f"{MODULE}.py").write_text("def more(x):\n    return x + 1\n")
    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with local as cluster, Client(cluster) as client:
        client.subscribe_topic("all", heard)
        monkeypatch.syspath_prepend(tmp_path)  # processes that start after that would have it
        monkeypatch.delitem(sys.modules, MODULE, raising=False)
        module = importlib.import_module(MODULE)
        with stageprof.profile(gil=False) as prof:
            futures = client.map(module.more, range(4))
            went = [gone.acquire(timeout=30) for _ in range(2)]
            client.cancel(futures)
    assert all(went)
    recording = prof.recording
    said = [label for _, _, label in recording.timeline.marks(failure.UNLOADED)]
    assert [label.split("\t")[:2] for label in said] == 2 * [["ModuleNotFoundError", MODULE]]
    (found,) = (one for one in recording.findings() if one.rule == "worker-restarted")
    assert f"`{MODULE}` is not there" in found.headline
    assert f'client.upload_file("{MODULE}.py")' in found.fix.code
    assert found.where.prefix == "more"
    assert found.severity != Severity.NOTE


def test_what_an_exception_says_is_not_told() -> None:
    rings = Rings()
    failure.begin()
    for error in (ValueError(SECRET), ModuleNotFoundError(SECRET, name="geo"), ImportError(SECRET)):
        failure.unloaded(rings, "worker", error)  # type: ignore[arg-type]
    assert [row[3] for _, row in rings.rows] == [
        "ValueError\t\t",
        "ModuleNotFoundError\tgeo\t",
        "ImportError\t\t",
    ]
    assert {(role, row[0], row[2]) for role, row in rings.rows} == {("worker", MARK, "not loaded")}


def test_the_name_of_a_module_is_text_whatever_it_is() -> None:
    class Sly(ImportError):
        @property
        def name(self) -> str:  # type: ignore[override]
            raise SystemExit

    rings = Rings()
    failure.begin()
    failure.unloaded(rings, "worker", Sly(SECRET, name="a\tb"))  # type: ignore[arg-type]
    failure.unloaded(rings, "worker", KeyboardInterrupt())  # type: ignore[arg-type]
    assert [row[3] for _, row in rings.rows] == ["Sly\ta b\t"]


def test_so_many_are_told_and_no_more() -> None:
    rings = Rings()
    failure.begin()
    for _ in range(failure.MOST + 5):
        failure.unloaded(rings, "worker", ValueError())  # type: ignore[arg-type]
    assert len(rings.rows) == failure.MOST


def test_code_that_cython_made_of_files_elsewhere_is_no_line_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries name the files that they were built from; one that is there may be the user's."""
    (tmp_path / "mine.pyx").touch()
    monkeypatch.chdir(tmp_path)
    assert kind("msgpack/_unpacker.pyx") == LIBRARY
    assert kind("pandas/_libs/hashtable_class_helper.pxi") == LIBRARY
    assert kind("mine.pyx") == USER
