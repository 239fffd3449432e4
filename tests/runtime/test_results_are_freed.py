"""The observer keeps nothing alive: what a task made is gone when it has ended, as without it."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import pytest

from stageprof_runtime.guard import Watch
from stageprof_runtime.probes import stacks
from stageprof_runtime.shield import shield


class Large:
    """Something that a task makes."""


class Emit:
    """Takes what is emitted and forgets it."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args: None


def test_looking_at_a_task_does_not_keep_its_variables() -> None:
    """The frames of all threads hold the looker's own, which holds them: a circle."""
    made: list[weakref.ref[Large]] = []
    begun, end = threading.Event(), threading.Event()

    def task() -> None:
        large = Large()
        made.append(weakref.ref(large))
        begun.set()
        end.wait(10)

    thread = threading.Thread(target=task)
    gc.disable()
    try:
        thread.start()
        assert begun.wait(10)
        assert thread.ident is not None
        stacks.running[thread.ident] = ("worker", "task-1")
        stacks.Tasks(Emit()).look(time.perf_counter_ns(), 50_000_000, 0.0)
        end.set()
        thread.join()
        assert made[0]() is None
    finally:
        end.set()
        stacks.running.clear()
        gc.enable()


def fails(things: list[int]) -> int:
    return next(iter(things))


@pytest.mark.parametrize("planted", [False, True])
def test_what_raises_through_a_shield_does_not_keep_its_callers_variables(planted: bool) -> None:
    """Whether the function raised, or our own code after it did as well."""

    def careless(function: Any) -> Any:
        def ours(*args: Any) -> Any:
            try:
                return function(*args)
            finally:
                if planted:
                    raise RuntimeError("planted")

        return ours

    shielded = shield(fails, careless, Watch("careless"))
    made: list[weakref.ref[Large]] = []

    def caller() -> None:
        large = Large()
        made.append(weakref.ref(large))
        try:
            shielded([])
        except StopIteration:
            return

    gc.disable()
    try:
        caller()
        assert made[0]() is None
    finally:
        gc.enable()
