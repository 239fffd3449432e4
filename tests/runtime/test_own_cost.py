"""What looking costs is what it used of a processor: its waiting delays nobody."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from threading import get_ident

import msgpack
import pytest

from clusters import soon
from stageprof_runtime import looker as looker_module
from stageprof_runtime import sampler as sampler_module
from stageprof_runtime.clock import now_ns, thread_ns
from stageprof_runtime.context import waiting
from stageprof_runtime.event import SAMPLE, Place
from stageprof_runtime.guard import GRACE_NS, STRIDE
from stageprof_runtime.looker import EMPTY, OFTEN, PERIOD_S, SPREAD, Looker, watch
from stageprof_runtime.nap import Nap
from stageprof_runtime.ring import Ring
from stageprof_runtime.sampler import Sampler
from stageprof_runtime.shipper import ENOUGH, FEW, ROUNDS, SELDOM, Shipper, sometimes

#: Seconds for which each look or round waits here without using a processor.
WAITS_S = 0.3
#: The longest time that a look stands for, with room for a machine that does other things.
LONGEST_S = 2 * (1 + SPREAD) * PERIOD_S


def test_a_look_that_waits_is_not_over_its_budget() -> None:
    looked = threading.Semaphore(0)

    def look(now: int, ns: int, late_s: float) -> bool:
        time.sleep(WAITS_S)
        looked.release()
        return True

    looker = Looker("waiting", look)
    looker.start()
    for _ in range(3):
        assert looked.acquire(timeout=30)
    looker.stop()
    seen = watch("waiting")
    assert seen.calls >= 3
    assert not seen.sampled
    assert not seen.disabled
    assert seen.spent_ns < WAITS_S * 1e9 / 2


def test_the_sampler_counts_what_it_used() -> None:
    looked = threading.Semaphore(0)
    sampler = Sampler(Ring(), thread=-1)

    def once(t: int, late_s: float) -> None:
        time.sleep(WAITS_S)
        looked.release()

    sampler._once = once  # type: ignore[method-assign]
    sampler._worker.start()
    assert looked.acquire(timeout=30)
    sampler.stop()
    assert sampler.looks >= 1
    assert sampler.cost_ns < WAITS_S * 1e9 / 2


def looking(used: Callable[[], None], until: Callable[[], bool]) -> int:
    """What a looker says it cost that calls this at each look."""

    def look(now: int, ns: int, late_s: float) -> bool:
        used()
        return True

    looker = Looker("all", look)
    looker.start()
    soon(until)
    looker.stop()
    return watch("all").spent_ns + watch("all").beside_ns


def sampling(used: Callable[[], None], until: Callable[[], bool]) -> int:
    """The same of the sampler."""
    sampler = Sampler(Ring(), thread=-1)
    sampler._once = lambda *_: used()  # type: ignore[method-assign]
    sampler._worker.start()
    soon(until)
    sampler.stop()
    return sampler.cost_ns


def packing(used: Callable[[], None], until: Callable[[], bool]) -> int:
    """The same of a shipper."""
    shipper = Shipper(Place("client", "host", 1, "client", 0), Ring(), lambda _: None)
    shipper.every, shipper.rounds = [used], lambda: 1
    shipper.start()
    soon(until)
    shipper.stop()
    return shipper.cost["ship"][1]


@pytest.mark.parametrize("does", [looking, sampling, packing])
def test_all_that_a_thread_of_ours_used_is_counted(
    does: Callable[[Callable[[], None], Callable[[], bool]], int],
) -> None:
    """With what it takes to wake up, which is as much as what is done then."""
    used: list[int] = []
    cost = does(lambda: used.append(thread_ns()), lambda: len(used) > 5)
    assert cost >= used[-1]


def test_what_is_done_sometimes_is_done_at_once_and_then_one_time_of_so_many() -> None:
    times: list[int] = []
    done: list[int] = []
    job = sometimes(lambda: done.append(len(times)))
    while len(times) <= 2 * SELDOM:
        job()
        times.append(1)
    assert done == [0, SELDOM, 2 * SELDOM]


def test_what_it_takes_to_wake_is_told_but_no_budget_is_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside code that gives up the GIL often it is far more than the look."""
    times = itertools.accumulate(itertools.cycle([3_000_000, 50_000]))
    monkeypatch.setattr(looker_module, "thread_ns", lambda: next(times))

    class Over(threading.Event):
        looks = 0

        def wait(self, timeout: float | None = None) -> bool:
            self.looks += timeout is not None
            return self.looks > 200

    looker = Looker("dear", lambda *_: True)
    looker._over = Over()
    looker._run()
    seen = watch("dear")
    assert not seen.sampled
    assert not seen.disabled
    assert (seen.spent_ns, seen.beside_ns) == (200 * 50_000, 200 * 3_000_000)
    shipper = Shipper(Place("client", "host", 1, "client", 0), Ring(), lambda _: None)
    assert shipper._since(seen) == [200, 200 * 3_050_000]


def test_the_sampler_looks_half_as_often_after_five_seconds_and_again_after_fifteen() -> None:
    pauses: list[float] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(round((timeout or 0) / sampler_module.PERIOD_S))
            return len(pauses) > 2 * sampler_module.OFTEN

    sampler = Sampler(Ring(), thread=-1)
    sampler._stop = Stop()
    sampler._once = lambda *_: None  # type: ignore[method-assign]
    sampler._run()
    often = sampler_module.OFTEN
    assert pauses == [1] * often + [2] * often + [4]


def test_after_a_wait_the_sampler_looks_often_again_and_first_at_any_part_of_a_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or what a loop does between its waits would be seen always, or never."""
    pauses: list[float] = []
    often = sampler_module.OFTEN

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append((timeout or 0) / sampler_module.PERIOD_S)
            if len(pauses) == 2 * often:
                waiting.add(-1)
            return len(pauses) > 2 * often + 20

    monkeypatch.setattr(waiting, "until", lambda _, thread: waiting.discard(thread))
    sampler = Sampler(Ring(), thread=-1)
    sampler._stop = Stop()
    sampler._once = lambda *_: None  # type: ignore[method-assign]
    sampler._run()
    assert pauses[2 * often - 1] == 2
    assert 0 < pauses[2 * often] < 1
    assert set(pauses[2 * often + 1 :]) == {1}


def test_the_shipper_counts_what_it_used() -> None:
    sent = threading.Semaphore(0)

    def send(batch: bytes) -> None:
        time.sleep(WAITS_S)
        sent.release()

    shipper = Shipper(Place("worker", "h", 1, "a", 0), Ring(), send)
    shipper.start()
    assert sent.acquire(timeout=30)
    shipper.stop()
    calls, ns = shipper.cost["ship"]
    assert calls >= 1
    assert ns < WAITS_S * 1e9 / 2


def test_the_sampler_sleeps_while_its_thread_waits_in_dask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asleep, until = threading.Event(), waiting.until

    def slept(over: Callable[[], bool], thread: int) -> None:
        asleep.set()
        until(over, thread)

    monkeypatch.setattr(waiting, "until", slept)
    sampler = Sampler(Ring(), get_ident())
    waiting.add(get_ident())
    sampler._worker.start()
    assert asleep.wait(30)
    assert sampler.looks == 1
    waiting.discard(get_ident())
    soon(lambda: sampler.looks > 3)
    sampler.stop()


def test_it_ends_though_its_thread_still_waits() -> None:
    sampler = Sampler(Ring(), get_ident())
    waiting.add(get_ident())
    try:
        sampler._worker.start()
        soon(lambda: sampler.looks == 1)
        sampler.stop()
        assert not sampler._worker.is_alive()
    finally:
        waiting.discard(get_ident())


def test_a_sleep_is_ended_without_waiting_for_anything() -> None:
    nap, ended = Nap(), threading.Event()
    for _ in range(3):  # nobody sleeps
        nap.end()
    nap.until(lambda: True)
    nap.until(lambda: False)  # what was ended before it began

    def sleep() -> None:
        nap.until(lambda: False)
        ended.set()

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    soon(lambda: nap.on)
    assert not ended.is_set()
    nap.end()
    assert ended.wait(30)
    sleeper.join()


class Watched:
    """A looker at what is in a list, and the seconds for which each look stood."""

    def __init__(self) -> None:
        self.things: list[str] = []
        self.stood: list[float] = []
        self.looks = 0
        self.nap = Nap()
        self.looker = Looker("list", self.look, lambda: bool(self.things), self.nap)

    def look(self, _: int, ns: int, __: float) -> bool:
        self.looks += 1
        if self.things:
            self.stood.append(ns / 1e9)
        return bool(self.things)


def test_where_nothing_is_to_be_seen_for_a_while_nobody_looks_until_something_comes() -> None:
    watched = Watched()
    watched.looker.start()
    soon(lambda: watched.nap.on)
    assert watched.looks == EMPTY
    watched.things.append("task")
    watched.nap.end()
    soon(lambda: len(watched.stood) > 2)
    assert watched.stood[0] <= LONGEST_S  # not for the time in which nobody looked
    watched.looker.stop()
    assert not watched.nap.on


def test_what_comes_as_the_sleep_begins_is_not_missed() -> None:
    watched = Watched()
    asked = threading.Event()

    def there() -> bool:
        if watched.looks >= EMPTY and not asked.is_set():
            asked.set()  # the looker is about to sleep; nobody who comes now would wake it
            watched.things.append("task")
            return False
        return bool(watched.things)

    watched.looker._there = there
    watched.looker.start()
    soon(lambda: len(watched.stood) > 0)
    watched.looker.stop()


def test_first_looks_come_at_any_part_of_a_period_and_stand_for_a_whole_one() -> None:
    looker, parts = Looker("first", lambda *_: True, lambda: True, Nap()), []
    for looks in range(1, 41):
        looker._looks = looks
        pause, begun = looker._rested(), now_ns()
        period = looker._period()
        assert 0 <= pause <= period
        assert (begun - looker._last) / 1e9 + pause == pytest.approx(period, abs=0.02)
        parts.append(pause / period)
    quarters = [sum(q / 4 <= part < (q + 1) / 4 for part in parts) for q in range(4)]
    assert min(quarters) >= 8


def test_where_nobody_tells_that_something_comes_it_is_looked_for_half_as_often() -> None:
    looker = Looker("still", lambda *_: False)
    looker._looks, looker._empty = 1, EMPTY - 1
    usual = looker._pause()
    looker._empty = EMPTY
    assert looker._pause() == pytest.approx(2 * usual)
    looker.stop()


@pytest.mark.parametrize("apart", [33, 71, 300])
def test_what_comes_and_goes_is_seen_as_often_as_it_is_there(apart: int) -> None:
    """Tasks of 10 ms, so many ms apart: the looks beat with none of them."""
    looker, now, seen, looks = Looker("beat", lambda *_: True), 0.0, 0, 20_000
    for turn in range(looks):
        looker._looks = 1 + turn % OFTEN  # as often as at first
        now += looker._pause()
        seen += now * 1e3 % apart < 10
    assert seen / looks == pytest.approx(10 / apart, rel=0.1)
    looker.stop()


def test_looks_become_half_as_frequent_twice() -> None:
    looker = Looker("long", lambda *_: True)
    periods = []
    for first in (1, 1 + OFTEN, 1 + 2 * OFTEN, 1 + 3 * OFTEN, 1 + 100 * OFTEN):
        lengths = []
        for looks in range(first, first + OFTEN):
            looker._looks = looks
            lengths.append(looker._period())
        periods.append(round(sum(lengths) / len(lengths) / PERIOD_S))
    assert periods == [1, 2, 4, 4, 4]


def test_over_its_budget_it_looks_once_where_it_looked_ten_times() -> None:
    looker = Looker("dear", lambda *_: True)
    looker._looks = 1
    usual, seen = looker._period(), looker._watch
    seen.calls += 1
    seen.measured(2 * GRACE_NS)
    assert seen.sampled
    assert looker._period() == pytest.approx(STRIDE * usual)
    seen.calls += 1
    seen.measured(2 * GRACE_NS)
    assert seen.disabled == "over its time budget"
    looker.stop()


def test_where_few_rows_come_a_place_wakes_once_in_half_a_second() -> None:
    shipper, batches = shipping(rows=lambda _: 3)
    assert [lasts for lasts, _ in batches[:6]] == [1, 2, 2, 5, 5, 5]
    assert [rows for lasts, rows in batches[3:6]] == [3, 3, 3]
    assert shipper.ring.dropped == 0


def test_where_many_rows_come_it_wakes_ten_times() -> None:
    _, batches = shipping(rows=lambda _: FEW + 1)
    assert {lasts for lasts, _ in batches} == {1}


def test_it_wakes_as_often_again_once_more_comes() -> None:
    _, batches = shipping(rows=lambda i: 3 if i < 5 else 2 * ENOUGH)
    lasts = [lasts for lasts, _ in batches]
    assert lasts[4] == 5
    assert set(lasts[6:]) == {1}


def test_what_can_wait_is_done_every_two_seconds_and_at_the_end() -> None:
    shipper = Shipper(Place("worker", "h", 1, "a", 0), Ring(), lambda _: None)
    done: list[str] = []
    shipper.seldom.append(lambda: done.append("it"))
    times = []
    for _ in range(2 * SELDOM * ROUNDS):
        shipper._lasts = 1
        shipper._round()
        times.append(len(done))
    assert times.index(1) + 1 == SELDOM * ROUNDS
    assert times[-2:] == [1, 2]
    shipper.drain()
    assert len(done) == 3


def test_of_what_can_wait_a_failure_stops_nothing() -> None:
    sent: list[bytes] = []
    shipper = Shipper(Place("worker", "h", 1, "a", 0), Ring(), sent.append)

    def fail() -> None:
        raise OSError("the system does not say")

    shipper.seldom.append(fail)
    before = []
    for _ in range(SELDOM * ROUNDS):
        before.append(len(sent))
        shipper._lasts = 1
        shipper._round()
    assert len(sent) > before[-1]  # in the round in which it failed
    assert shipper.drain()


def shipping(rows: Callable[[int], int]) -> tuple[Shipper, list[tuple[int, int]]]:
    """Some rounds of a shipper in which so many rows come: how long each was, rows sent in it."""
    sent: list[int] = []

    def send(batch: bytes) -> None:
        tables = msgpack.unpackb(batch)["tables"]
        sent[-1] += sum(table[0] for table in tables.values())

    shipper = Shipper(Place("worker", "h", 1, "a", 0), Ring(), send)
    shipper.drain()  # the first batch goes at once
    lasted = []
    for i in range(12):
        lasted.append(shipper._lasts)
        sent.append(0)
        for t in range(rows(i)):
            shipper.ring.emit((SAMPLE, t, "x", 1.0))
        shipper._round()
    return shipper, list(zip(lasted, sent, strict=True))
