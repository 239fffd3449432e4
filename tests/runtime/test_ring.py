"""The ring: bounded, and every row that it loses is counted."""

from __future__ import annotations

import threading

from stageprof_runtime.clock import thread_ns
from stageprof_runtime.event import CPU, SHARE, SPAN, SUM
from stageprof_runtime.ring import NAMES, Ring


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
