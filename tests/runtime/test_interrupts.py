"""Ctrl-C may come while our own code runs in the user's thread: it is theirs.

So is what a signal's handler raises, or another thread has raised there: time limits are kept so.
What we note of the thread meanwhile is as it was before, or it would be wrong from then on. Reading
the clock is what our code does most, and where Python looks for interrupts.
"""

from __future__ import annotations

import asyncio
import ctypes
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
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
        self.number = signal.SIGINT

    def __call__(self) -> int:
        if threading.current_thread() is threading.main_thread():
            self.left -= 1
            if not self.left:
                signal.raise_signal(self.number)
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
        except (KeyboardInterrupt, TimeoutError):
            assert noted() == before, n
            continue
        finally:
            interrupts.left = 0
        return n - 1
    raise AssertionError("it is interrupted for ever")


@pytest.fixture
def alarmed(interrupts: Interrupts) -> Iterator[Interrupts]:
    """The same by a signal whose handler is the program's, as that of an alarm is."""

    def over(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("that is long enough")

    before = signal.signal(signal.SIGUSR1, over)
    interrupts.number = signal.SIGUSR1
    yield interrupts
    signal.signal(signal.SIGUSR1, before)


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


def test_a_time_limit_that_a_program_keeps_with_an_alarm_is_kept(
    alarmed: Interrupts, caplog: pytest.LogCaptureFixture
) -> None:
    """It was taken for a failure of a hook, and the computation went on."""
    with stageprof.profile(gil=False):
        assert interrupted(computes, alarmed) > 5
    assert caplog.records == []


class Late(Exception):
    """What a thread is ended with by another one."""


#: A hook in a module of ours; Python raises what was set as soon as the call is over.
HOOK = """
def hook(function):
    def wrapper():
        raise_here(thread, kind)
        return function()
    return wrapper
"""


@pytest.mark.parametrize("kind", [Late, TimeoutError, SystemExit])
def test_what_another_thread_raises_in_one_gets_there_through_a_hook(kind: type) -> None:
    watch = Watch("hook")
    raise_here, thread = ctypes.pythonapi.PyThreadState_SetAsyncExc, threading.get_ident()
    names: dict[str, Any] = {"__name__": "stageprof_runtime.probes.hook", "raise_here": raise_here}
    names |= {"thread": ctypes.c_ulong(thread), "kind": ctypes.py_object(kind)}
    exec(HOOK, names)  # its module must be ours
    with pytest.raises(kind):
        shield(lambda: None, names["hook"], watch)()
    assert not watch.failures


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
