"""The client tells of calls that last, once; short ones cost no row."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from threading import get_ident
from typing import Any

import pytest
from distributed import Client

import clusters
import stageprof
from stageprof_runtime import underway
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import BLOCK, MARK
from stageprof_runtime.probes import waiting
from stageprof_runtime.ring import Ring
from stageprof_runtime.underway import LONG_NS, TELLS, WAITS, Waits, calls


@pytest.fixture
def ring() -> Iterator[Ring]:
    before = calls.copy()
    calls.clear()
    yield Ring()
    calls.clear()
    calls.update(before)


def told(ring: Ring) -> list[tuple[Any, ...]]:
    """The marks of waits since the last look."""
    return [row[1:] for row in ring.take(sums_too=False) if row[0] == MARK and row[2] == WAITS]


def test_a_long_call_is_told_once_at_the_instant_at_which_it_began(ring: Ring) -> None:
    waits, start = Waits(ring), now_ns() - LONG_NS
    calls[7] = start, "_gather"
    waits.tell()
    assert told(ring) == [(start, WAITS, "7 _gather")]
    waits.tell()
    assert told(ring) == []


def test_a_short_call_is_not_told(ring: Ring) -> None:
    waits = Waits(ring)
    calls[7] = now_ns(), "_gather"
    waits.tell()
    assert told(ring) == []


def test_the_next_call_of_a_thread_is_another(ring: Ring) -> None:
    waits, start = Waits(ring), now_ns() - 2 * LONG_NS
    for began in (start, start + LONG_NS):
        calls[7] = began, "_gather"
        waits.tell()
    assert [row[0] for row in told(ring)] == [start, start + LONG_NS]


def test_each_session_is_told(ring: Ring) -> None:
    other = Ring()
    calls[-3] = now_ns() - LONG_NS, "gather"
    for each in (ring, other):
        Waits(each).tell()
    assert [row[2] for row in told(ring) + told(other)] == ["-3 gather"] * 2


def test_it_is_said_once_that_waits_are_told(ring: Ring) -> None:
    waits = Waits(ring)
    waits.tell()
    waits.tell()
    assert [row[2] for row in ring.take(sums_too=False)] == [TELLS]


class Rows:
    """Keeps what a probe emits."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def row(self, _role: str, row: tuple[Any, ...]) -> None:
        self.rows.append(row)


@pytest.mark.parametrize(("long_ns", "rows"), [(0, 1), (10**15, 0)])
def test_a_long_wait_that_fails_has_its_row_as_it_was_told_of(
    long_ns: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if it went on, it would count until the end of a recording."""
    emit: Any = Rows()

    def give_up(_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(waiting, "LONG_NS", long_ns)
    with pytest.raises(TimeoutError):
        waiting._next(emit, give_up)(None)
    assert [row[0] for row in emit.rows] == [BLOCK] * rows
    assert get_ident() not in calls


def nothing() -> None:
    """A task that takes no time."""


@pytest.mark.cluster
def test_calls_are_under_way_while_they_last_and_leave_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of many short ones no mark is there, and of each that ended its row."""
    seen: list[dict[int, tuple[int, str]]] = []
    monkeypatch.setattr(underway, "LONG_NS", 10**15)
    with clusters.local(1) as client, stageprof.profile(gil=False) as prof:
        client.sync(_look, seen)
        for _ in range(50):
            client.submit(nothing, pure=False).result()
    _, call = seen[0][get_ident()]
    assert call == "_look"
    assert get_ident() not in calls
    assert prof.recording.timeline.marks(WAITS) == []
    assert prof.recording.store.rows("block") >= 51


async def _look(seen: list[dict[int, tuple[int, str]]]) -> None:
    seen.append(calls.copy())


@pytest.mark.cluster
def test_an_awaited_call_is_that_of_the_region() -> None:
    seen: list[dict[int, tuple[int, str]]] = []

    async def program() -> None:
        async with (
            Client(processes=False, dashboard_address=":0", asynchronous=True) as client,
            stageprof.profile(gil=False),
        ):
            gathering = client.gather([client.submit(nothing)])
            client.loop.call_later(0, lambda: seen.append(calls.copy()))
            await gathering

    asyncio.run(program())
    [(lane, (_, call))] = seen[0].items()
    assert (lane < 0, call) == (True, "gather")
    assert not calls
