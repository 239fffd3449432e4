"""How often the watch looks: often where threads wait, more seldom the longer it has looked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from stageprof_runtime.gil import watch as looking
from stageprof_runtime.gil.messages import Out
from stageprof_runtime.gil.watch import LESS, SELDOM, SELDOMMEST_NS, SOME

RATE, SECOND = 100, 1_000_000_000
OFTEN = SECOND // RATE


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A watch that has nobody to tell, and whose looks are made up."""
    nobody = os.open(os.devnull, os.O_WRONLY)
    monkeypatch.setattr(looking, "Out", lambda _: Out(nobody))
    target: Any = SimpleNamespace(pid=0)
    spy: Any = SimpleNamespace(refused="", told="", start=lambda: None)
    yield looking.Watch(target, spy, RATE)
    os.close(nobody)


def period(watch: Any, seconds: float, *, held: int, waiting: int, tasks: bool = True) -> float:
    """Its period after 100 looks in the half second that ends so long after it began."""
    watch._told = watch._began + round((seconds - 0.5) * SECOND)
    watch._now = watch._began + round(seconds * SECOND)
    states = watch._states
    states.looks, states.held, states.waiting = 100, held, waiting
    watch._tasks = tasks
    watch.tell()
    return float(watch._period / OFTEN)


@pytest.mark.parametrize(
    ("seconds", "times"), [(0.5, 1), (1.4, 1), (1.6, 2), (4.4, 2), (4.6, 4), (13.4, 4), (13.6, 8)]
)
def test_where_threads_wait_it_looks_half_as_often_each_time_it_has_looked_thrice_as_long(
    watch: Any, seconds: float, times: int
) -> None:
    assert period(watch, seconds, held=97, waiting=50) == times


def test_where_none_waits_and_where_none_holds_it_looks_more_seldom(watch: Any) -> None:
    assert period(watch, 1, held=90, waiting=0) == LESS
    assert period(watch, 1, held=0, waiting=0) == SELDOM


def test_where_less_than_half_a_thread_waits_it_looks_half_as_often(watch: Any) -> None:
    assert period(watch, 1, held=90, waiting=49) == SOME
    assert period(watch, 1, held=90, waiting=50) == 1


def test_where_only_an_event_loop_waits_for_the_one_task_it_looks_half_as_often(
    watch: Any,
) -> None:
    assert period(watch, 1, held=90, waiting=90, tasks=False) == SOME


@pytest.mark.parametrize(("part", "calls"), [(0.2, 3), (0.6, 4), (0.97, 1)])
def test_it_looks_as_often_until_it_knows_how_often_the_gil_is_taken(
    watch: Any, part: float, calls: int
) -> None:
    """Within five points, twice the standard error: 256 looks for 20 %, 384 for 60 %."""
    periods = [period(watch, 14, held=round(100 * part), waiting=50) for _ in range(calls)]
    assert periods == [1] * (calls - 1) + [8]


def test_no_look_is_so_far_from_the_one_before_that_nothing_is_known_between(watch: Any) -> None:
    assert period(watch, 3600, held=0, waiting=0) * OFTEN == SELDOMMEST_NS


def test_once_threads_wait_again_it_looks_more_often_however_long_it_has_looked(
    watch: Any,
) -> None:
    quiet = period(watch, 20, held=97, waiting=0)
    assert period(watch, 21, held=97, waiting=50) < quiet
