"""Workers whose clocks are wrong give the same account as workers whose clocks are right."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from distributed import Client

import clusters
import stageprof

pytestmark = pytest.mark.cluster

#: Run first of all in a worker: every clock that it reads is shifted and runs at a rate.
CUSTOMIZE = """
import importlib.util
import time
made = importlib.util.module_from_spec
importlib.util.module_from_spec = lambda spec: time if spec.name == "time" else made(spec)
def wrong(clock, unit):
    start = clock()
    def read():
        now = clock()
        value = start + (now - start) * {rate} + {shift} * unit
        return int(value) if unit > 1 else value
    return read
for name, unit in (("perf_counter_ns", 10**9), ("perf_counter", 1), ("monotonic", 1), ("time", 1)):
    setattr(time, name, wrong(getattr(time, name), unit))
"""

#: Seconds that the clocks are shifted by, and their rate.
SHIFTS = {"ahead": (3.0, 1.0), "behind": (-3.0, 1.0), "drifting": (1.0, 1.001)}


def nap(seconds: float, *needs: object) -> float:
    time.sleep(seconds)
    return seconds


def program(client: Client) -> None:
    """Chains over both workers: each task's end is what the next waits for."""
    first = [client.submit(nap, 0.1, pure=False) for _ in range(6)]
    second = [client.submit(nap, 0.1, *first, pure=False) for _ in range(6)]
    client.submit(nap, 0.3, *second, pure=False).result()


@contextmanager
def cluster(folder: Path, names: Sequence[str]) -> Iterator[Client]:
    """Two workers with these clocks ("" for a right one)."""
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            clusters.process("scheduler", "--port", "0", "--no-dashboard")
        )
        address = clusters.address_of(scheduler)
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
        for name in names:
            prefix = ["env", f"PYTHONPATH={customized(folder, name)}"] if name else []
            stack.enter_context(clusters.process("worker", address, *options, prefix=prefix))
        client = stack.enter_context(Client(address))
        client.wait_for_workers(2, timeout=60)
        yield client


def customized(folder: Path, name: str) -> str:
    """A search path that begins where a `sitecustomize` sets the clocks wrong."""
    shift, rate = SHIFTS[name]
    mine = folder / name
    mine.mkdir()
    (mine / "sitecustomize.py").write_text(CUSTOMIZE.format(shift=shift, rate=rate))
    return os.pathsep.join([str(mine), clusters.TESTS, *sys.path])


def recorded(folder: Path, names: Sequence[str] = ("", "")) -> stageprof.Recording:
    with cluster(folder, names) as client:
        program(client)  # what is slow only once is not compared
        with stageprof.profile() as prof:
            program(client)
    return prof.recording


@pytest.fixture
def true(tmp_path_factory: pytest.TempPathFactory) -> stageprof.Recording:
    """What right clocks say; for each try anew, for now and then Dask asks for a result twice."""
    return recorded(tmp_path_factory.mktemp("true"))


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("ahead", "behind"), id="ahead-behind", marks=pytest.mark.nightly),
        pytest.param(("drifting", "behind"), id="drifting-behind"),  # it is ahead, too
    ],
)
def test_the_account_is_the_same_whatever_the_workers_clocks_say(
    names: tuple[str, str], true: stageprof.Recording, tmp_path: Path
) -> None:
    recording = recorded(tmp_path, names)
    stages, expected = recording.stages()["wall_s"], true.stages()["wall_s"]
    assert abs(stages.sum() - recording.wall) < 0.01 * recording.wall
    for stage, seconds in expected.items():
        assert stages[str(stage)] == pytest.approx(seconds, rel=0.05, abs=0.05), stage
    tasks = recording.tasks()
    assert (tasks["assigned_s"] <= tasks["start_s"] + 1e-6).all()
    workers = recording.workers().sort_values("offset_s")
    for offset, error, shift in zip(
        workers["offset_s"],
        workers["offset_error_s"],
        sorted(-SHIFTS[name][0] for name in names),
        strict=True,
    ):
        assert 0 <= error < 0.02
        # Drift moves the offset by a thousandth of the worker's life.
        assert offset == pytest.approx(shift, abs=error + 0.05)
