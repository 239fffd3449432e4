"""Fixtures of every test: nothing of stageprof is left in the process, before or after."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dask
import distributed
import psutil
import pytest
from hypothesis import settings

import stageprof_runtime
from stageprof_runtime import patch, process
from stageprof_runtime.tail import MEMORY

# What tests share (planted delays, clusters) is imported by tests and by workers alike.
sys.path.insert(0, str(Path(__file__).parent))

import clusters
import template
from chromium import browser
from examples import BY_HAND, EXAMPLES
from long import BY_DAY, LONG, LONG_FILES, SEEN_ALWAYS, THIRD
from standing import client, standing

__all__ = ["browser", "client", "standing"]  # fixtures

TESTS = Path(__file__).parent

#: Python's own helpers, which stay from the first spawned process to the end of the session.
TRACKING, FORKING = "multiprocessing.resource_tracker", "multiprocessing.forkserver"

#: Said of a test that leaves something, which no second try hides.
LEFT = "something of this test is left"

#: Seconds that a thread or process already told to stop may take to be gone.
GRACE_S = 15


#: Tests that read planted delays back or watch real clusters: on a busy machine one may see a delay
#: that nobody planted, so they get two more tries; what is wrong stays wrong.
NOISY = (
    "check", "findings", "gil", "ground_truth", "layers", "objects", "profiles", "replay",
    "runtime", "test_samples",
)  # fmt: skip


#: Tests that measure time or memory: nothing else runs beside them. Where only some of a file do,
#: they are marked there.
ALONE = (
    "findings/test_clean", "gil/test_truth", "ground_truth", "layers/test_stages",
    "replay/test_irregular", "replay/test_real", "runtime/test_clocks", "runtime/test_overload",
)  # fmt: skip
#: Of those, what holds on a busy machine as well: the truth was measured by the same clock at the
#: same time, or something must only be there.
ANYWHERE = (
    "ground_truth/test_construction.py::test_fifty_thousand_",
    "ground_truth/test_execution.py::test_spilling_",
    "ground_truth/test_execution.py::test_the_first_import_",
    "ground_truth/test_lines.py::",
    "ground_truth/test_scheduling.py::test_ordering_on_a_cluster",
    "runtime/test_overload.py::test_a_stalled_recorder_",
)

#: Files that take longest, the longest first: at the end no process waits for another.
FIRST = (
    "findings/test_pairs", "runtime/test_hooks", "faces/test_run", "test_samples",
    "runtime/test_results", "compare/test_command", "ui/test_app", "runtime/test_cluster",
    "ui/test_report", "objects/test_planted", "notebook/test_cells", "collectors/test_hostile",
    "reliability/test_loaders", "ui/test_gil_page", "gil/test_unwinding", "faces/test_cli",
)  # fmt: skip
#: What shares a cluster to the end of the session, which is nothing that others should find.
LAST = ("ground_truth",)

# Begun in the background of a shell, tests and what they start would not hear an interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes depends on what runs beside it.
settings.register_profile(
    "stageprof", deadline=None, derandomize=not BY_HAND, max_examples=EXAMPLES
)
settings.load_profile("stageprof")

# As with Dask's commands: a worker of a LocalCluster is there in a tenth of the time.
if not clusters.FRESH:
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether a file holds nothing of what is asked for: what it imports may take seconds."""
    if not collection_path.is_relative_to(TESTS) or collection_path == TESTS:
        return None
    path, asked = collection_path.relative_to(TESTS).as_posix(), config.getoption("markexpr")
    left_out = "not nightly" in asked and path.startswith(LONG_FILES)
    wanted = [mark for mark in ("smoke", "alone") if f" and {mark}" in f" and {asked}"]
    if wanted and collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        text = collection_path.read_text(encoding="utf-8")
        there = ("alone",) if path.startswith(ALONE) else ()
        left_out |= any(mark not in there and f"mark.{mark}" not in text for mark in wanted)
    return left_out or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark noisy tests to be tried again, those that run alone, and those for the night."""
    seen = Counter[str]()
    for item in items:
        path = _path(item)
        family = f"{path}::{item.name.partition('[')[0]}"
        seen[family] += 1
        if path.startswith(NOISY):
            item.add_marker(pytest.mark.flaky(reruns=2, rerun_except=LEFT))
        if path.startswith(ALONE) and not f"{path}::{item.name}".startswith(ANYWHERE):
            item.add_marker(pytest.mark.alone)
        if _is_long(item, path) or (family in THIRD and seen[family] % 3 != 1):
            item.add_marker(pytest.mark.nightly)
    items.sort(key=_rank)


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of collections: of a million objects each takes long.

    What the environment is by now is what forked processes have.
    """
    clusters.usual.update(os.environ)
    gc.collect()
    gc.freeze()


def _rank(item: pytest.Item) -> int:
    path, alone = _path(item), item.get_closest_marker("alone") is not None
    if path.startswith(LAST):
        return len(FIRST) + 1
    found = (i for i, first in enumerate(FIRST) if path.startswith(first) and not alone)
    return next(found, len(FIRST))


def _path(item: pytest.Item) -> str:
    """Below tests/: the folder that this is checked out to may be called anything."""
    return item.path.relative_to(TESTS).as_posix()


def _is_long(item: pytest.Item, path: str) -> bool:
    if "browser" in getattr(item, "fixturenames", ()) and item.path.stem not in SEEN_ALWAYS:
        return True
    name, _, row = item.name.partition("[")
    if path.startswith(LONG_FILES) or item.name.startswith(
        tuple(f"test_{begin}" for begin in LONG.get(path, ()))
    ):
        return True
    if f"{path}::{name}" in BY_DAY:
        return not row.startswith(BY_DAY[f"{path}::{name}"])
    # Two kinds of cluster, of which one is enough every time.
    twice = ("ground_truth", "runtime/test_whose")
    return path.startswith(twice) and item.name.endswith("[local]")


@pytest.fixture(autouse=True)
def no_loop_of_the_browsers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Playwright's event loop stays the running one of its thread, where tests run their own."""
    loop = asyncio._get_running_loop()
    if loop is None or "browser" in request.fixturenames:
        yield
        return
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fails the test that leaves a probe, a thread, a process or a name of a cluster."""
    yield
    found = leftovers()
    assert found == [], LEFT


def leftovers() -> list[str]:
    """What of stageprof is in this process, or was started by it, as texts."""
    here = [*stageprof_runtime.installed(), *_replaced(), *_not_undone(), *_threads()]
    return [*here, *_processes(), *_files(), *_configured()]


#: What was told of already: the next test is not blamed for it.
_told: set[object] = set()


def _replaced() -> list[str]:
    """What stands in place of something of Dask's, or of a test's own."""
    found = [layer for layer in patch._layers.values() if layer not in _told]
    _told.update(found)
    return [f"replaced by {layer.ours}" for layer in found]


def _files() -> list[str]:
    """Files of this process among those that workers keep in memory."""
    found = list(Path(MEMORY).glob(f"stageprof-tails-*-{os.getpid()}-*/{os.getpid()}-*"))
    for file in found:  # so that the next test is not blamed for it
        file.unlink()
    return [f"file {file}" for file in found]


def _configured() -> list[str]:
    """What Dask's configuration computes on though no client is open.

    Clients that close in the order they came leave it: each puts back what it found.
    """
    if dask.config.get("scheduler", None) != "dask.distributed":
        return []
    try:
        distributed.default_client()
    except ValueError:
        return [f"scheduler {dask.config.config.pop('scheduler')}"]
    return []


def pytest_sessionfinish() -> None:
    """Remove what programs have left that tests have killed; others would do so after an hour."""
    for folder in Path(MEMORY).glob("stageprof-tails-*-stageprof-*"):
        owner = folder.name.split("-")[4]
        if owner.isdecimal() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _not_undone() -> list[str]:
    found = [name for name, why in process.failed.items() if why.startswith("undo")]
    # Popped, so that the next test is not blamed for it.
    return [f"{name}: {process.failed.pop(name)}" for name in found]


def _threads() -> list[str]:
    ours = [t for t in threading.enumerate() if t.name.startswith("stageprof")]
    for thread in ours:
        thread.join(GRACE_S)
    return [f"thread {t.name}" for t in ours if t.is_alive()]


def _processes() -> list[str]:
    children = [p for p in started() if p.pid not in clusters.shared]
    _, alive = psutil.wait_procs(children, timeout=GRACE_S)
    found = [str(p) for p in alive]
    for child in alive:  # so that the next test is not blamed for it
        child.kill()
    return found


def started() -> list[psutil.Process]:
    """What this process started, itself or through one that others are forked from.

    One pass over the processes of the machine, which is what takes long.
    """
    forking: set[int] = set()
    found = []
    for child in psutil.Process().children(recursive=True):  # parents come before their children
        try:
            parent, command = child.ppid(), " ".join(child.cmdline())
        except psutil.Error:  # it ended meanwhile
            continue
        if parent in forking:
            found.append(child)
        elif parent != os.getpid() or TRACKING in command:
            continue
        elif template.FILE in command or FORKING in command:
            forking.add(child.pid)
        else:
            found.append(child)
    return found
