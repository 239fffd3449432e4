"""A wrapper that takes too much beside what it wraps is put away; what it wraps goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import distributed.protocol
import numpy as np
import pytest
from dask._task_spec import Task
from distributed.protocol import ToPickle

from stageprof_runtime import guard, process, shield
from stageprof_runtime.event import Place
from stageprof_runtime.guard import SELDOM, TIMED, WRAPPER_GRACE_NS
from stageprof_runtime.patch import replace, wrapped, wrappers
from stageprof_runtime.probes import scheduling, serialization, shares
from stageprof_runtime.ring import Ring
from stageprof_runtime.shield import theirs
from stageprof_runtime.shipper import Shipper

MS = 1_000_000
#: What a wrapper that is too slow takes in a call.
SLOW = 5 * MS
#: After so many calls it has taken a second.
ENOUGH = WRAPPER_GRACE_NS // SLOW


class Clock:
    """A clock that goes on only when told to."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def take(self, ns: int) -> None:
        self.now += ns


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What is put away here is not told of as a loss of other tests' recordings."""
    before = set(wrapped)
    yield
    for name in set(wrapped) - before:
        del wrapped[name]
    for watch in wrapped.values():
        watch.disabled = ""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    for module in (guard, shield, serialization, shares, scheduling):
        monkeypatch.setattr(module, "now_ns", fake)
    return fake


class Wrapped:
    """A function that takes `theirs` ns, in a wrapper that takes `ours` beside it."""

    def __init__(self, clock: Clock, ours: int, theirs: int) -> None:
        self.seen = 0
        self._clock, self._ours, self._theirs = clock, ours, theirs
        self.owner: Any = SimpleNamespace(__name__="owner", function=self._function)
        self.undo = replace(self.owner, "function", self._make)

    def _function(self, x: int) -> int:
        self._clock.take(self._theirs)
        return x + 1

    def _make(self, function: Callable[[int], int]) -> Callable[[int], int]:
        def timed(x: int) -> int:
            self.seen += 1
            self._clock.take(self._ours)
            return function(x)

        return timed

    def call(self, times: int) -> None:
        assert [self.owner.function(i) for i in range(times)] == list(range(1, times + 1))


def test_a_wrapper_that_takes_most_of_the_time_is_put_away_after_a_second(clock: Clock) -> None:
    made = Wrapped(clock, ours=SLOW, theirs=MS)
    made.call(1_000)
    assert abs(made.seen - ENOUGH) <= TIMED
    assert wrapped["owner.function"].disabled == "over its time budget"
    made.undo()


def test_one_that_takes_a_tenth_stays_however_long_it_goes_on(clock: Clock) -> None:
    made = Wrapped(clock, ours=MS, theirs=9 * MS)
    made.call(20_000)
    assert made.seen == 20_000
    made.undo()


def test_what_the_function_takes_is_not_the_wrappers(clock: Clock) -> None:
    made = Wrapped(clock, ours=0, theirs=10_000 * MS)
    made.call(100)
    assert made.seen == 100
    assert wrapped["owner.function"].timed_ns == 0
    made.undo()


@pytest.mark.parametrize("before", [0, 1, SELDOM - 1])
def test_one_call_that_waited_long_says_nothing_of_the_others(before: int, clock: Clock) -> None:
    """Nor do two: also where they are the first that are timed, and stand for many."""
    made = Wrapped(clock, ours=0, theirs=MS)
    made.call(before)
    made._ours = 60_000 * MS
    made.call(2)
    made._ours = 0
    made.call(100)
    assert made.seen == before + 102
    made.undo()


@pytest.mark.parametrize("calls", [1, SELDOM])
def test_a_single_sample_never_puts_a_wrapper_away(calls: int, clock: Clock) -> None:
    watch = guard.Watch("w", wrapper=True)
    watch.calls = calls
    clock.take(20 * MS)
    watch.took(17_000 * MS, calls)
    assert not watch.disabled


def test_one_that_has_another_budget_or_awaits_things_is_never_put_away(clock: Clock) -> None:
    def make(function: Callable[[], int]) -> Callable[[], int]:
        def timed() -> int:
            clock.take(SLOW)
            return function()

        return timed

    owner: Any = SimpleNamespace(__name__="owner", function=lambda: 7)
    undo = replace(owner, "function", make, limited=False)
    assert {owner.function() for _ in range(1_000)} == {7}
    assert not wrapped["owner.function"].disabled
    assert wrapped["owner.function"] not in wrappers()
    undo()


def test_a_session_is_told_what_wrappers_took_since_it_began(clock: Clock) -> None:
    made = Wrapped(clock, ours=MS, theirs=99 * MS)
    made.call(1_000)
    later = 1 << 62  # than all that other tests have left, which is of another clock
    shipper = Shipper(Place("client", "h", 1, "c", later), Ring(), lambda _: None)
    leave = process.join("client", shipper.ring, [])
    try:
        shipper.lead({})
        made.call(160)
        calls, ns = shipper._of_wrappers()
        assert calls == 160
        assert ns == pytest.approx(160 * MS, rel=0.2)
    finally:
        leave()
        made.undo()


def test_what_is_the_users_in_a_wrapper_is_theirs(clock: Clock) -> None:
    def make(function: Callable[[], int]) -> Callable[[], int]:
        return lambda: theirs(slow, function)

    def slow(function: Callable[[], int]) -> int:
        clock.take(SLOW)
        return function()

    owner: Any = SimpleNamespace(__name__="owner", function=lambda: 7)
    undo = replace(owner, "function", make)
    assert {owner.function() for _ in range(1_000)} == {7}
    assert wrapped["owner.function"].timed_ns == 0
    undo()


def test_a_wrapped_coroutine_that_takes_too_much_is_put_away(clock: Clock) -> None:
    seen = []

    async def function(x: int) -> int:
        clock.take(MS)
        await asyncio.sleep(0)
        return x + 1

    def make(function: Callable[..., Any]) -> Callable[..., Any]:
        async def timed(x: int) -> Any:
            seen.append(x)
            clock.take(SLOW)
            return await function(x)

        return timed

    async def call() -> list[int]:
        return [await owner.function(i) for i in range(1_000)]

    owner: Any = SimpleNamespace(__name__="owner", function=function)
    undo = replace(owner, "function", make)
    assert asyncio.run(call()) == list(range(1, 1_001))
    assert abs(len(seen) - ENOUGH) <= TIMED
    undo()


@pytest.mark.parametrize(
    ("module", "name", "wrapper"),
    [
        (serialization, "_theirs", "distributed.protocol.dumps"),
        (serialization, "_theirs", "distributed.protocol.loads"),
        (shares, "_nbytes", "distributed.protocol.pickle.dumps"),
        (shares, "loading", "distributed.protocol.pickle.loads"),
    ],
)
def test_what_is_called_for_every_message_has_a_budget_too(
    module: Any, name: str, wrapper: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is timed in one call of `SELDOM`, which stands for all of them."""
    plain = getattr(module, name)

    def slow(*args: Any) -> Any:
        clock.take(SLOW)
        return plain(*args)

    monkeypatch.setattr(module, name, slow)
    leave = process.join("worker", Ring(), [serialization.install, shares.install])
    calls = ENOUGH + 4 * SELDOM
    message = [{"op": "compute-task", "run_spec": ToPickle(Task("x", len, np.zeros(9)))}]
    try:
        for _ in range(calls):
            [back] = distributed.protocol.loads(distributed.protocol.dumps(message))
            assert back["run_spec"].key == "x"
        assert wrapped[wrapper].disabled == "over its time budget"
    finally:
        leave()
