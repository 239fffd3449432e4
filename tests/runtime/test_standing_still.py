"""Samples of what makes a process or its loop stand still: collections, and loops that are late."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pytest

import stageprof
from clusters import local
from stageprof_runtime import process
from stageprof_runtime.event import SAMPLE
from stageprof_runtime.guard import Watch
from stageprof_runtime.probes.garbage import SAFE, SHORT_NS, Meter, install
from stageprof_runtime.ring import Ring
from stageprof_runtime.tick import EVERY_NS, LATE_NS, Ticks


class Emitted:
    """Collects rows."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def row(self, _role: str, row: tuple[Any, ...]) -> None:
        self.rows.append(row)


def collected(*lengths: int, generation: int = 2) -> list[tuple[Any, ...]]:
    """What is told of collections of these lengths, ns, one after another."""
    now = 1  # at 0 nothing has begun
    out = Emitted()
    meter = Meter(out, lambda: now)  # type: ignore[arg-type]
    for length in lengths:
        meter.hook("start", {"generation": generation})
        now += length
        meter.hook("stop", {"generation": generation})
    return out.rows


def test_long_collections_are_told_one_by_one_and_short_ones_together() -> None:
    assert collected(5_000_000, 7_000_000) == [
        (SAMPLE, 5_000_001, "gc.pause_s", 0.005),
        (SAMPLE, 12_000_001, "gc.pause_s", 0.007),
    ]
    half = SHORT_NS // 2
    assert collected(half, half) == [(SAMPLE, 2 * half + 1, "gc.pause_s", 2 * half / 1e9)]
    assert collected(half) == []


def test_collections_of_the_youngest_are_not_counted() -> None:
    assert collected(5_000_000, generation=0) == []


def test_an_end_without_its_beginning_tells_nothing() -> None:
    out = Emitted()
    Meter(out, lambda: 10**9).hook("stop", {"generation": 2})  # type: ignore[arg-type]
    assert out.rows == []


def test_a_failing_hook_is_put_away_and_raises_nothing() -> None:
    meter = Meter(None, lambda: 1)  # type: ignore[arg-type]
    for _ in range(20):
        meter.hook("start", {})
    assert meter.watch.disabled


@pytest.mark.skipif(not SAFE, reason="collections cannot be watched safely before Python 3.12")
def test_the_probe_leaves_the_callbacks_as_they_were() -> None:
    before = list(gc.callbacks)
    ring = Ring()
    leave = process.join("client", ring, [install])
    keep = [[i] for i in range(300_000)]
    gc.collect()
    leave()
    assert gc.callbacks == before
    told = [row for row in ring.take() if row[0] == SAMPLE]
    assert sum(row[3] for row in told) > 0
    del keep


def test_a_loop_that_was_held_says_for_how_long() -> None:
    ring = Ring()

    async def held() -> None:
        stop = Ticks(asyncio.get_running_loop(), ring, Watch("ticks")).start()
        busy(0.15)
        await asyncio.sleep(0.05)
        stop()

    asyncio.run(held())
    rows = ring.take()
    assert max(row[3] for row in rows if row[2] == "loop.stall_s") >= 0.12
    assert any(row[2] == "loop.cpu_s" for row in rows)


@pytest.mark.parametrize(("late", "told"), [(LATE_NS, 1), (LATE_NS - 1, 0)])
def test_only_what_is_late_is_told(late: int, told: int) -> None:
    ring = Ring()
    Ticks(None, ring, Watch("ticks")).note(EVERY_NS - 1, late, lambda: 0)
    assert len(ring.take()) == told


def test_ticks_that_fail_end_and_raise_nothing() -> None:
    watch = Watch("ticks")
    ticks = Ticks(None, Ring(), watch)
    ticks._tick()
    assert watch.failures == 1


def busy(seconds: float) -> int:
    """Makes and keeps objects until so much time has passed."""
    end = time.monotonic() + seconds
    kept: list[list[int]] = []
    while time.monotonic() < end:
        kept.append([len(kept)])
    return len(kept) and 1


@pytest.mark.skipif(SAFE, reason="there they can")
def test_collections_are_not_watched_where_that_may_crash_the_process() -> None:
    before = list(gc.callbacks)
    leave = process.join("client", Ring(), [install])
    assert gc.callbacks == before
    leave()


@pytest.mark.smoke
@pytest.mark.cluster
def test_scheduler_and_workers_say_so_on_a_real_cluster() -> None:
    with local(1) as client, stageprof.profile() as prof:
        client.submit(busy, 1.0).result()
    samples = prof.recording.samples()
    by_role = samples.groupby("role")["name"].agg(set)
    assert "loop.cpu_s" in by_role["scheduler"] & by_role["worker"]
    assert ("gc.pause_s" in by_role["worker"]) == SAFE
    table, names = prof.recording.store.table("sample"), prof.recording.store.strings
    values = [
        float(value)
        for name, value in zip(table["name"].tolist(), table["value"].tolist(), strict=True)
        if names[name] == "worker.saturation"
    ]
    assert values == [pytest.approx(1.1)]
