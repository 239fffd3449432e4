"""What somebody has made himself in Dask's place is used as without us."""

from __future__ import annotations

import functools
from concurrent.futures import Executor, Future
from typing import Any

import dask
import pytest
from dask.local import batch_execute_tasks
from distributed.protocol import pickle as dumping

import stageprof
from stageprof_runtime.pickling import Dump


def add(x: int, y: int) -> int:
    return x + y


GRAPH = {"a": 1, "b": (add, "a", 1), "c": (add, "b", 1)}


def test_a_submit_of_ones_own_is_called_as_dask_calls_it() -> None:
    """With Dask's function and a batch of tasks: it had got four arguments."""
    seen: list[Any] = []

    def submit(function: Any, tasks: Any) -> Future[Any]:
        seen.append((function, [task[0] for task in tasks]))
        future: Future[Any] = Future()
        future.set_result(function(tasks))
        return future

    with stageprof.profile(gil=False) as prof:
        assert dask.local.get_async(submit, 1, dict(GRAPH), "c") == 3
    assert {function for function, _ in seen} == {batch_execute_tasks}
    tasks = prof.recording.tasks()
    assert set(tasks["key"]) == {"b", "c"}
    assert (tasks["duration_s"] > 0).all()


class Elsewhere(Executor):
    """Runs what it is given on hosts without stageprof: it must be Dask's."""

    _max_workers = 1

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        assert not getattr(function, "__module__", "").startswith("stageprof")
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except ZeroDivisionError as error:
            future.set_exception(error)
        return future


def test_an_executor_of_ones_own_is_given_what_dask_gives_it() -> None:
    with stageprof.profile(gil=False) as prof, dask.config.set(pool=Elsewhere()):
        assert dask.delayed(add)(1, 2).compute(scheduler="threads") == 3
    assert len(prof.recording.tasks()) == 1


def test_what_it_runs_may_fail() -> None:
    failing = dask.delayed(lambda: 1 / 0)()
    with (
        stageprof.profile(gil=False) as prof,
        dask.config.set(pool=Elsewhere()),
        pytest.raises(ZeroDivisionError),
    ):
        failing.compute(scheduler="threads")
    assert prof.recording.tasks()["status"].tolist() == ["erred"]


def test_a_wrapper_of_ones_own_around_dasks_dumps_is_called() -> None:
    """What only it can pickle, or hide, went out without it."""
    called: list[Any] = []

    @functools.wraps(dumping.dumps)
    def hidden(x: object, **options: Any) -> Any:
        called.append(x)
        return dumping.dumps(x, **options)

    with pytest.raises(LookupError):
        Dump().watching(hidden)
