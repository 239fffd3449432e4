"""The ring: bounded, and every row that it loses is counted."""

from __future__ import annotations

import dis
import functools
import itertools
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

import pytest

from stageprof_runtime import process
from stageprof_runtime.clock import thread_ns
from stageprof_runtime.event import CPU, SHARE, SPAN, STACK, SUM
from stageprof_runtime.process import EMIT
from stageprof_runtime.ring import NAMES, Ring

#: What adds to a sum -> which field of the sum's row says how much was.
ADDING: Final[dict[str, tuple[Callable[[Ring], None], int]]] = {
    "span": (lambda ring: ring.span(7, 0, 1, 1), 4),
    "cpu": (lambda ring: ring.span(7, 0, ring.short_ns, 1, cpu=1), 3),
    "share": (lambda ring: ring.share(7, "x", 1, 1), 5),
    "stack": (lambda ring: ring.stack("x", "", "", "", 1), 7),
    "emit span": (lambda _: EMIT.span("worker", 7, 0, 1), 4),
    "emit share": (lambda _: EMIT.share("worker", 7, "x", 1, 1, 1), 5),
}
#: Instructions after which the interpreter lets another thread go on; no others.
SWITCHES: Final = ("CALL", "RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")
SUMS: Final = (SUM, SHARE, CPU, STACK)


def test_rows_come_out_in_the_order_they_went_in() -> None:
    ring = Ring()
    for i in range(5):
        ring.emit((SPAN, i))
    assert [row[1] for row in ring.take()] == [0, 1, 2, 3, 4]
    assert ring.take() == []


def test_a_full_ring_loses_its_oldest_rows_and_counts_them() -> None:
    ring = Ring(10)
    for i in range(25):
        ring.emit((SPAN, i))
    assert [row[1] for row in ring.take()] == list(range(15, 25))
    assert ring.dropped == 15


def test_what_came_at_once_to_a_full_ring_goes_with_the_next_row() -> None:
    ring = Ring(10)
    for i in range(13):
        ring.append((SPAN, i))  # as threads do that asked at once whether there is room
    ring.emit((SPAN, 13))
    assert [row[1] for row in ring.take()] == list(range(4, 14))
    assert ring.dropped == 4


def test_many_threads_lose_no_row_uncounted() -> None:
    """Stored + dropped = emitted, whatever the threads do to each other."""
    ring, each, threads = Ring(1_000), 20_000, 4

    def emit() -> None:
        for i in range(each):
            ring.emit((SPAN, i))

    workers = [threading.Thread(target=emit) for _ in range(threads)]
    for worker in workers:
        worker.start()
    taken = 0
    while any(worker.is_alive() for worker in workers):
        taken += len(ring.take())
    for worker in workers:
        worker.join()
    taken += len(ring.take())
    assert taken + ring.dropped == each * threads


def test_short_spans_are_summed_by_step() -> None:
    ring = Ring(short_ns=100)
    for _ in range(3):
        ring.span(7, 0, 10, 1, "", 5)
    ring.span(7, 0, 100, 1, "long", 5)
    span, total = ring.take()
    assert span == (SPAN, 7, 0, 100, 1, "long", 5)
    assert (total[0], *total[2:]) == (SUM, 7, 3, 30, 15)


def test_time_on_a_processor_is_summed_by_step_where_the_clock_was_read() -> None:
    ring, began = Ring(short_ns=100), thread_ns()
    ring.span(7, 0, 100, 1, cpu=began)
    ring.span(7, 0, 200, 1, cpu=began)
    ring.span(7, 0, 1_000, 1)
    ring.span(7, 0, 10, 1, cpu=began)
    (cpu,) = [row for row in ring.take() if row[0] == CPU]
    assert (cpu[2], cpu[3]) == (7, 300)
    assert 0 <= cpu[4] <= 2 * (thread_ns() - began)
    assert [row for row in ring.take() if row[0] == CPU] == []


def test_shares_are_summed_by_step_and_name() -> None:
    ring = Ring()
    for name in ("x", "y", "x"):
        ring.share(7, name, 1, 10, 5)
    ring.share(7, "x", 1, 500_000, 5, 900)
    long, *sums = ring.take()
    assert long == (SHARE, 900, 7, "x", 1, 500_000, 5)
    assert [row[2:] for row in sums] == [(7, "x", 2, 20, 10), (7, "y", 1, 10, 5)]


def test_shares_of_too_many_names_are_summed_without_a_name() -> None:
    ring = Ring()
    for i in range(NAMES + 50):
        ring.share(7, f"x{i}", 1, 10, 5)
    rows = {row[3]: row[4:] for row in ring.take()}
    assert len(rows) == NAMES + 1
    assert rows[""] == (50, 500, 250)


def test_sums_can_wait_for_a_later_take() -> None:
    ring = Ring(short_ns=100)
    ring.span(7, 0, 10, 1)
    assert ring.take(sums_too=False) == []
    assert len(ring.take()) == 1


def test_a_cleared_ring_is_empty() -> None:
    ring = Ring(short_ns=100)
    ring.emit((SPAN, 1))
    ring.span(7, 0, 10, 1)
    ring.clear()
    assert ring.take() == []


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("adding", ADDING)
def test_whenever_sums_are_taken_what_is_being_added_to_them_is_not_lost(
    adding: str, before: int
) -> None:
    """Another thread takes them at each instant at which the adding one may be interrupted."""
    add, counted = ADDING[adding]
    for instant in itertools.count():
        ring = Ring()
        leave = process.join("worker", ring, ())
        for _ in range(before):
            add(ring)
        rows = _interrupted(functools.partial(add, ring), ring.take, instant)
        leave()
        there = [row for row in (rows or []) + ring.take() if row[0] in SUMS]
        each = ring.short_ns if adding == "cpu" else 1
        assert sum(row[counted] for row in there) == (before + 1) * each, instant
        if rows is None:
            break
    assert instant


def _interrupted(doing: Callable[[], None], take: Callable[[], Any], instant: int) -> Any:
    """Call `doing`, and `take` where a thread may be switched for that time; what it gave."""
    instants, last = itertools.count(), ""
    taken = None

    def look(frame: FrameType, event: str, _: object) -> Any:
        nonlocal last, taken
        if event == "opcode":
            if last.startswith(SWITCHES) and next(instants) == instant:
                taken = take()
            last = _instructions(frame.f_code)[frame.f_lasti]
        frame.f_trace_opcodes = True
        return look

    tracing = sys.gettrace()
    sys.settrace(look)
    try:
        doing()
    finally:
        sys.settrace(tracing)
    return taken


@functools.cache
def _instructions(code: CodeType) -> dict[int, str]:
    return {each.offset: each.opname for each in dis.get_instructions(code)}
