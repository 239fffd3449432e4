"""Tracebacks that users see are those that they would see without us."""

from __future__ import annotations

import traceback
from types import FrameType

import dask
import pytest
from distributed import Client, LocalCluster

import stageprof


def divide() -> float:
    return 1 / 0


def ask() -> float:
    return divide() + 1


def frames(scheduler: str | None) -> list[str]:
    """The functions of the traceback of a task that fails."""
    try:
        dask.delayed(ask)().compute(scheduler=scheduler)
    except ZeroDivisionError as error:
        return [_name(frame) for frame, _ in traceback.walk_tb(error.__traceback__)]
    raise AssertionError("it did not fail")


def _name(frame: FrameType) -> str:
    return frame.f_code.co_name


@pytest.mark.parametrize("scheduler", ["threads", "sync", "processes"])
def test_a_task_that_fails_locally_has_the_traceback_that_it_has_without_us(
    scheduler: str,
) -> None:
    bare = frames(scheduler)
    with stageprof.profile(gil=False):
        recorded = frames(scheduler)
    assert recorded == bare
    assert bare[-2:] == ["ask", "divide"]


def test_a_task_that_fails_on_a_cluster_has_too() -> None:
    here = LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    with here as cluster, Client(cluster):
        bare = frames(None)
        with stageprof.profile(gil=False):
            recorded = frames(None)
    assert recorded == bare
