"""What each worker sends however little it does becomes rarer the more workers there are."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from distributed.scheduler import heartbeat_interval

from stageprof_runtime import pings
from stageprof_runtime.compat import heartbeat_s
from stageprof_runtime.pings import Pings
from stageprof_runtime.ring import Ring
from stageprof_runtime.shipper import ROUNDS
from stageprof_runtime.worker_plugin import RAREST_S, WorkerProbe


def probe(workers: int) -> Any:
    """Of a worker that Dask told how often to say that it is there, among so many."""
    asked: list[int] = []

    async def clock() -> int:
        asked.append(1)
        return 1

    heartbeat = SimpleNamespace(callback_time=1000 * heartbeat_interval(workers))
    made: Any = WorkerProbe("s")
    made._pings = Pings(Ring())
    scheduler = SimpleNamespace(address="", **{"s-clock": clock})
    made._worker = SimpleNamespace(periodic_callbacks={"heartbeat": heartbeat}, scheduler=scheduler)
    made.asked = asked
    return made


@pytest.mark.parametrize("workers", [1, 10, 49])
def test_few_tell_of_themselves_twice_a_second(workers: int) -> None:
    assert probe(workers)._rounds() == ROUNDS


@pytest.mark.parametrize("workers", [50, 200, 1_000, 10_000])
def test_many_tell_as_rarely_as_their_hearts_beat_up_to_a_limit(workers: int) -> None:
    """A second of all workers brings some hundred batches while there are less than a thousand."""
    every_s = probe(workers)._rounds() / 10

    assert every_s == pytest.approx(min(heartbeat_interval(workers), RAREST_S), abs=0.05)
    assert workers / every_s <= max(200, workers / RAREST_S)


@pytest.mark.parametrize(("workers", "trips"), [(2, 5), (1_000, 1)])
def test_many_ask_the_schedulers_clock_once(workers: int, trips: int) -> None:
    asked = probe(workers)
    asyncio.run(asked._ping())

    assert len(asked.asked) == trips


def test_after_the_first_it_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = probe(2)
    for now in range(1, 10_000_000_001, 500_000_000):
        monkeypatch.setattr(pings, "now_ns", lambda now=now: now)
        asyncio.run(asked._ping())

    assert len(asked.asked) == pings.FIRST + 9
    assert len(asked._pings._ring.take()) == len(asked.asked)


def test_a_worker_that_does_not_tell_its_heartbeat_is_one_of_few() -> None:
    assert heartbeat_s(SimpleNamespace()) == 0
    assert heartbeat_s(SimpleNamespace(periodic_callbacks={"heartbeat": None})) == 0
