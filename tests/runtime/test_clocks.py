"""Workers whose clocks are wrong give the same account as workers whose clocks are right."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from distributed import Client

import clusters
import stageprof

pytestmark = pytest.mark.cluster

#: Run first in a worker: every clock that it reads is shifted by `SHIFT` and runs at `RATE`.
PRELOAD = """
import time
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


def recorded(*preload: str) -> stageprof.Recording:
    with clusters.separate(2, preload=preload) as client:
        program(client)  # what is slow only once is not compared
        with stageprof.profile() as prof:
            program(client)
    return prof.recording


@pytest.fixture(scope="module")
def true() -> stageprof.Recording:
    return recorded()


def preload(folder: Path, name: str) -> str:
    shift, rate = SHIFTS[name]
    path = folder / f"clock_{name}.py"
    path.write_text(PRELOAD.format(shift=shift, rate=rate))
    return str(path)


@pytest.mark.parametrize("names", [("ahead", "behind"), ("drifting", "behind")], ids="-".join)
def test_the_account_is_the_same_whatever_the_workers_clocks_say(
    names: tuple[str, str], true: stageprof.Recording, tmp_path: Path
) -> None:
    recording = recorded(*(preload(tmp_path, name) for name in names))
    stages, expected = recording.stages()["wall_s"], true.stages()["wall_s"]
    assert abs(stages.sum() - recording.wall) < 0.01 * recording.wall
    for stage, seconds in expected.items():
        assert stages[stage] == pytest.approx(seconds, rel=0.05, abs=0.05), stage
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
