"""Fixtures of every test: nothing of stageprof is left in the process, before or after."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import stageprof_runtime

# What tests share (planted delays, clusters) is imported by tests and by workers alike.
sys.path.insert(0, str(Path(__file__).parent))

import clusters

#: Python's own helpers, which stay from the first spawned process to the end of the session.
PYTHONS_OWN = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")

#: Seconds that a thread or process already told to stop may take to be gone.
GRACE_S = 5


#: Tests that read planted delays back or watch real clusters: on a busy machine one may see a delay
#: that nobody planted, so they get two more tries; what is wrong stays wrong.
NOISY = (
    "ground_truth", "runtime", "test_samples", "replay", "layers", "objects", "findings", "check",
)  # fmt: skip


#: Tests that measure time or memory: nothing else runs beside them.
ALONE = ("ground_truth", "runtime", "replay", "layers", "test_hostile", "test_clean")
#: Of the tests in a browser these are quick enough for every time; the rest is for the night.
SEEN_ALWAYS = ("test_report", "test_app", "test_guard", "test_boxes")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark noisy tests to be tried again, those that run alone, and those for the night."""
    for item in items:
        path = str(item.path)
        if any(part in path for part in NOISY):
            item.add_marker(pytest.mark.flaky(reruns=2))
        if any(part in path for part in ALONE):
            item.add_marker(pytest.mark.alone)
        if "browser" in getattr(item, "fixturenames", ()) and item.path.stem not in SEEN_ALWAYS:
            item.add_marker(pytest.mark.nightly)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fails the test that finds or leaves a probe, a thread or a process."""
    assert leftovers() == []
    path = sys.path.copy()
    yield
    sys.path[:] = path  # a program that was run in this process had its own folder first
    assert leftovers() == []


def leftovers() -> list[str]:
    """What of stageprof is in this process, or was started by it, as texts."""
    return [*stageprof_runtime.installed(), *_threads(), *_processes()]


def _threads() -> list[str]:
    ours = [t for t in threading.enumerate() if t.name.startswith("stageprof")]
    for thread in ours:
        thread.join(GRACE_S)
    return [f"thread {t.name}" for t in ours if t.is_alive()]


def _processes() -> list[str]:
    children = [p for p in psutil.Process().children() if _is_ours(p)]
    children = [p for p in children if p.pid not in clusters.shared]
    _, alive = psutil.wait_procs(children, timeout=GRACE_S)
    found = [str(p) for p in alive]
    for process in alive:  # so that the next test is not blamed for it
        process.kill()
    return found


def _is_ours(process: psutil.Process) -> bool:
    try:
        command = " ".join(process.cmdline())
    except psutil.Error:  # it ended meanwhile
        return False
    return not any(name in command for name in PYTHONS_OWN)
