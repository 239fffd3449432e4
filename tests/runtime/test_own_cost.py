"""What looking costs is what it used of a processor: its waiting delays nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from threading import get_ident

import pytest

from clusters import soon
from stageprof_runtime.context import waiting
from stageprof_runtime.event import Place
from stageprof_runtime.looker import Looker, watch
from stageprof_runtime.ring import Ring
from stageprof_runtime.sampler import Sampler
from stageprof_runtime.shipper import Shipper

#: Seconds for which each look or round waits here without using a processor.
WAITS_S = 0.3


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


def test_a_thread_that_comes_back_waits_for_no_lock_of_ours() -> None:
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with waiting._back:
            taken.set()
            over.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(30)
    waiting.add(-1)
    waiting.discard(-1)
    over.set()
    holder.join()
    assert -1 not in waiting
