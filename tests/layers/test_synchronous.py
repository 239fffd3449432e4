"""The synchronous scheduler runs tasks on the caller's own thread: they have their layers, too."""

from __future__ import annotations

import time

import dask
import pytest

from truth import record


def slow(x: int) -> int:
    time.sleep(0.05)
    return x


def fast(x: int) -> int:
    return x


def test_the_time_of_a_task_is_its_layers() -> None:
    def program() -> None:
        dask.compute(*[dask.delayed(fast)(dask.delayed(slow)(i)) for i in range(4)])

    with dask.config.set(scheduler="sync"):
        layers = record(program).layers()
    wall_s = dict(zip(layers["layer"], layers["wall_s"], strict=True))
    assert wall_s["slow"] == pytest.approx(0.2, rel=0.1, abs=0.05)
    assert wall_s["fast"] < 0.05
