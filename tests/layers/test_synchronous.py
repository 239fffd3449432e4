"""The synchronous scheduler runs tasks on the caller's own thread: they have their layers, too."""

from __future__ import annotations

from pathlib import Path

import dask
import pytest

import planted
from truth import record


def slow(x: int, log: str) -> int:
    planted.timed_sleep(log, "slow", 0.05)
    return x


def fast(x: int) -> int:
    return x


def test_the_time_of_a_task_is_its_layers(tmp_path: Path) -> None:
    log = str(tmp_path / "log")

    def program() -> None:
        dask.compute(*[dask.delayed(fast)(dask.delayed(slow)(i, log)) for i in range(4)])

    with dask.config.set(scheduler="sync"):
        layers = record(program).layers()
    wall_s = dict(zip(layers["layer"], layers["wall_s"], strict=True))
    took = sum(noted["seconds"] for noted in planted.truths(log))
    assert wall_s["slow"] == pytest.approx(took, rel=0.1, abs=0.05)
    assert wall_s["fast"] < 0.05
