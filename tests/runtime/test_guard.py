"""Guards: nothing leaves a hook, and a hook that fails or costs too much is put away."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from stageprof_runtime import guard as module
from stageprof_runtime.guard import (
    FAILURES,
    GRACE_NS,
    LOGGED,
    STRIDE,
    Watch,
    Watches,
    attempt,
    attempt_each,
    failures,
    guard,
    hook,
    quietly,
)
from stageprof_runtime.interrupts import interrupted

SECOND = 1_000_000_000

#: Whatever a hook may raise.
ERRORS = [
    RuntimeError,
    TypeError,
    MemoryError,
    RecursionError,
    asyncio.CancelledError,
    SystemExit,
    KeyboardInterrupt,
]


@pytest.fixture(autouse=True)
def nothing_logged() -> None:
    """As at the beginning of a session."""
    module.logged.clear()


class Clock:
    """A clock that goes on only when told to."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(module, "now_ns", fake)
    return fake


def raises(error: type[BaseException]) -> Any:
    def hook(*args: Any) -> None:
        raise error("ours")

    return hook


@pytest.mark.parametrize("error", ERRORS)
def test_no_error_leaves_a_guarded_hook(error: type[BaseException]) -> None:
    watch = Watch("h")
    guard(raises(error), watch)(1, 2)
    assert watch.failures == 1


def test_a_hook_that_fails_ten_times_is_disabled_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls, watch = [], Watch("scheduler.transition")

    def fails(x: int) -> None:
        calls.append(x)
        raise ValueError("broken")

    guarded = guard(fails, watch)
    with caplog.at_level(logging.WARNING, "stageprof"):
        for i in range(10_000):
            guarded(i)
    assert len(calls) == FAILURES
    assert "failed 10 times" in watch.disabled
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert len(caplog.text) < 500


def test_hooks_that_all_fail_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """F2: the recording names them all; the log of each process names two."""
    watches = [Watch(f"h{i}") for i in range(50)]
    with caplog.at_level(logging.WARNING, "stageprof"):
        for watch in watches:
            watch.failed(ValueError("broken"))
    assert [watch.failures for watch in watches] == [1] * 50
    assert len(caplog.records) == LOGGED


def test_failures_are_told_once_as_drops() -> None:
    failures()
    watch = Watch("h")
    for _ in range(3):
        watch.failed(ValueError())
    assert failures() == {"hook failed: h": 3}
    assert failures() == {}


def test_a_log_that_fails_too_is_no_failure_of_the_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.logger, "warning", raises(RecursionError))
    watch = Watch("h")
    watch.failed(ValueError())
    assert watch.failures == 1


def test_ctrl_c_while_a_failure_is_told_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was lost: the program went on."""
    monkeypatch.setattr(module.logger, "warning", raises(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        Watch("hook").failed(ValueError())


def test_who_tells_of_a_failure_may_come_upon_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finalizer or a signal's handler runs in the middle: its thread waited for itself."""

    class Untold(dict[str, int]):
        def get(self, name: str, *default: Any) -> Any:
            if name == "first":
                Watch("second").failed(ValueError())
            return super().get(name, *default)

    monkeypatch.setattr(module, "untold", Untold())
    first = threading.Thread(target=Watch("first").failed, args=[ValueError()], daemon=True)
    first.start()
    first.join(10)
    assert not first.is_alive()
    assert failures() == {"hook failed: first": 1, "hook failed: second": 1}


def test_a_cheap_hook_runs_at_every_call(clock: Clock) -> None:
    calls: list[int] = []
    guarded = guard(calls.append, Watch("h"))
    for i in range(1_000):
        guarded(i)
    assert len(calls) == 1_000


def test_a_hook_over_its_budget_is_sampled_and_then_disabled(clock: Clock) -> None:
    calls, watch = [], Watch("h")

    def slow(x: int) -> None:
        calls.append(x)
        clock.now += 5_000_000

    guarded = guard(slow, watch)
    while not watch.sampled:
        guarded(len(calls))
    # The grace is used up, give or take the calls between two measurements.
    assert GRACE_NS <= clock.now <= GRACE_NS + 16 * 5_000_000
    before = len(calls)
    for i in range(STRIDE * 4):
        guarded(i)
    assert len(calls) == before + 4
    for i in range(10_000):
        guarded(i)
    assert watch.disabled == "over its time budget"
    assert clock.now < 3 * GRACE_NS


def test_time_between_calls_counts_for_the_budget(clock: Clock) -> None:
    """2 % of a long run is more than the grace."""

    def slow() -> None:
        clock.now += SECOND // 100

    watch = Watch("h")
    guarded = guard(slow, watch)
    for _ in range(1_000):
        clock.now += SECOND
        guarded()
    assert not watch.sampled
    assert watch.spent_ns == 1_000 * SECOND // 100


def test_a_call_that_had_to_wait_does_not_stand_for_those_that_had_not(clock: Clock) -> None:
    """A scheduler whose hook once waited 20 ms for the GIL would forget nine tasks of ten."""
    watch = Watch("h")

    def interrupted() -> None:
        clock.now += 20_000_000 if watch.calls == 160 else 1_000

    guarded = guard(interrupted, watch)
    for _ in range(6_000):
        guarded()
    assert (watch.sampled, watch.disabled) == (False, "")
    assert watch.spent_ns < 30_000_000


def test_a_hook_that_waits_now_and_then_is_put_away(clock: Clock) -> None:
    """Every tenth call; 500 of them wait ten seconds."""
    watch = Watch("h")

    def waits() -> None:
        clock.now += 20_000_000 if watch.calls % 10 == 0 else 1_000

    guarded = guard(waits, watch)
    for _ in range(5_000):
        guarded()
    assert watch.disabled


class Plugin:
    def __init__(self) -> None:
        self.watches = Watches("scheduler")
        self.calls = 0

    @hook
    def add_worker(self, error: type[BaseException]) -> None:
        self.calls += 1
        raise error("ours")


@pytest.mark.parametrize("error", ERRORS)
def test_a_hook_method_raises_nothing_and_is_disabled_at_the_tenth(
    error: type[BaseException],
) -> None:
    plugin = Plugin()
    for _ in range(100):
        plugin.add_worker(error)
    assert plugin.calls == FAILURES
    assert plugin.watches["add_worker"].name == "scheduler.add_worker"


@pytest.mark.parametrize("error", [e for e in ERRORS if e is not KeyboardInterrupt])
def test_an_attempt_raises_nothing(error: type[BaseException]) -> None:
    watch = Watch("h")
    attempt(watch, raises(error))
    assert watch.failures == 1


def test_an_attempt_lets_the_users_interrupt_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        attempt(Watch("h"), raises(KeyboardInterrupt))


@pytest.mark.parametrize("error", [e for e in ERRORS if e is not KeyboardInterrupt])
def test_a_quiet_coroutine_raises_nothing(error: type[BaseException]) -> None:
    async def ours() -> None:
        raise error("ours")

    watch = Watch("h")
    asyncio.run(quietly(ours(), watch))
    assert watch.failures == 1


def test_a_real_cancellation_gets_out_of_a_quiet_coroutine() -> None:
    async def main() -> None:
        task = asyncio.ensure_future(quietly(asyncio.Event().wait(), Watch("h")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


async def asked() -> bool:
    return interrupted(KeyboardInterrupt())


def test_ctrl_c_in_a_loop_that_leaves_it_to_python_is_the_users() -> None:
    """A notebook's kernel runs cells within its loop: the interrupt was lost there."""
    loop = asyncio.new_event_loop()
    try:
        assert loop.run_until_complete(asked())
    finally:
        loop.close()


def test_ctrl_c_in_a_loop_that_catches_it_itself_is_none() -> None:
    assert not asyncio.run(asked())


def test_who_interrupts_one_step_has_the_others_taken() -> None:
    """A thread and open files were left for good."""
    taken: list[int] = []

    def interrupt() -> None:
        taken.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt_each(Watch("stop"), [interrupt, lambda: taken.append(2), lambda: taken.append(3)])
    assert taken == [1, 2, 3]
