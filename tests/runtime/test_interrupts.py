"""Ctrl-C may come while our own code runs in the user's thread: it is theirs.

What we note of the thread meanwhile is as it was before, or it would be wrong from then on. Reading
the clock is what our code does most, and where Python looks for interrupts.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from dask import delayed
from distributed import Client

import stageprof
from stageprof_runtime import carried, context, underway
from stageprof_runtime.clock import now_ns
from stageprof_runtime.guard import Watch
from stageprof_runtime.probes import local, stacks, waiting
from stageprof_runtime.shield import shield


class Interrupts:
    """A clock that is interrupted when it is read for the nth time in the main thread."""

    def __init__(self) -> None:
        self.left = 0

    def __call__(self) -> int:
        if threading.current_thread() is threading.main_thread():
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return now_ns()


def ours() -> list[ModuleType]:
    return [m for name, m in list(sys.modules.items()) if name.startswith("stageprof_runtime.")]


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Interrupts:
    clock = Interrupts()
    for module in ours():
        for name in {"now_ns", "thread_ns"} & set(vars(module)):
            monkeypatch.setattr(module, name, clock)
    return clock


def noted() -> list[Any]:
    """What is noted of the calling thread."""
    thread = threading.get_ident()
    of_thread = thread in context.waiting, stacks.running.get(thread), underway.calls.get(thread)
    inside = context.inside.at, context.inside.optimizing, carried.here.dump, carried.here.load
    return [*of_thread, *inside, waiting._fetch.get(), local._current.get()]


def interrupted(program: Callable[[], Any], interrupts: Interrupts) -> int:
    """Interrupt a program at each reading of the clock; at how many."""
    before = noted()
    for n in range(1, 1000):
        interrupts.left = n
        try:
            program()
        except KeyboardInterrupt:
            assert noted() == before, n
            continue
        finally:
            interrupts.left = 0
        return n - 1
    raise AssertionError("it is interrupted for ever")


def computes() -> int:
    result: int = delayed(abs)(-1).compute(scheduler="sync")
    return result


def test_an_interrupted_computation_leaves_its_thread_as_it_was(
    interrupts: Interrupts, caplog: pytest.LogCaptureFixture
) -> None:
    """Its thread was in a task, or in an optimizer, for ever: nobody looked at it any more."""
    with stageprof.profile(gil=False):
        assert interrupted(computes, interrupts) > 5
    assert caplog.records == []


def test_so_does_one_that_waits_for_a_cluster(client: Client, interrupts: Interrupts) -> None:
    with stageprof.profile(gil=False):
        asked = interrupted(lambda: client.submit(abs, -1, pure=False).result(), interrupts)
    assert asked > 5


def test_a_coroutine_that_ends_anywhere_leaves_what_runs_there_alone() -> None:
    """Python comes upon one that nobody awaits at any time; what ran there was called twice."""
    calls: list[int] = []

    async def waits() -> None:
        await asyncio.sleep(0)

    def fails() -> None:
        calls.append(1)
        raise ZeroDivisionError

    waiting = [shield(waits, lambda f: f, Watch("waits"))()]
    waiting[0].send(None)

    def make(function: Callable[[], None]) -> Callable[[], None]:
        def ours() -> None:
            waiting.clear()
            function()

        return ours

    with pytest.raises(ZeroDivisionError):
        shield(fails, make, Watch("fails"))()
    assert calls == [1]
