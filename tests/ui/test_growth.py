"""The boxes of a run that goes on are those of its whole recording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import ASSIGN, MARK, NO_CAUSE, PING, RUN
from stageprof_ui.columns import timeline
from stageprof_ui.columns.boxes import SUBROWS
from stageprof_ui.columns.growth import UNIT_NS, Growth
from ui.followed import CLIENT, SCHEDULER, WORKER, assigned, batches, ran

Generated = Callable[[int], Path]
MS = 10**6


def test_what_grew_is_what_the_whole_recording_shows(generated: Generated) -> None:
    path = generated(10_000)
    store, growth = Store(), Growth()
    for i, batch in enumerate(batches(path)):
        store.add(batch)
        if i % 7 == 0:
            growth.look(store)
    for _ in range(6):
        growth.look(store)
    whole = timeline.boxes(Recording.open(path))
    shown = growth.boxes()
    assert len(shown) == 10_000

    def rows(boxes: Any) -> dict[str, tuple[Any, Any]]:
        start, stop = boxes.seconds()
        found = {}
        for i, row in enumerate(boxes.rows):
            mine = slice(int(boxes.offsets[i]), int(boxes.offsets[i + 1]))
            tasks = boxes.run[mine] >= (-1 if boxes is shown else 0)
            if row.kind == "thread":
                found[row.label] = start[mine][tasks], stop[mine][tasks]
        return found

    mine, wanted = rows(shown), rows(whole)
    assert mine.keys() == wanted.keys()
    first, *_ = mine
    off = wanted[first][0][0] - mine[first][0][0]  # this recording has a region that began earlier
    for label, (start, stop) in mine.items():
        assert np.allclose(start + off, wanted[label][0], atol=2e-3)
        assert np.allclose(stop + off, wanted[label][1], atol=2e-3)
        assert (start[1:] >= stop[:-1] - 1e-9).all()


def test_layers_are_those_of_the_keys_by_prefix(generated: Generated) -> None:
    store, growth = Store(), Growth()
    for batch in batches(generated(1_000)):
        store.add(batch)
    growth.look(store)
    prefixes = Recording.open(generated(1_000)).tasks()["prefix"].value_counts()
    counted = np.bincount(growth.since(0, 10**6).layer, minlength=len(growth.layers))
    named = {layer.name: int(n) for layer, n in zip(growth.layers, counted, strict=True)}
    assert {name: n for name, n in named.items() if name} == prefixes.to_dict()
    assert named[""] == 0


def test_a_task_is_held_back_until_its_layer_is_known_and_so_are_those_after_it() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    store.add(pack(SCHEDULER, 0, 1, [assigned(2, "b-1")]))
    store.add(pack(WORKER, 0, 1, [ran(1, 10**6, 2 * 10**6), ran(2, 3 * 10**6, 4 * 10**6)]))
    growth.look(store)
    assert len(growth) == 0
    store.add(pack(SCHEDULER, 1, 2, [assigned(1, "a-1")]))
    growth.look(store)
    told = growth.since(0, 10)
    assert [growth.layers[i].name for i in told.layer.tolist()] == ["a", "b"]
    assert told.start.tolist() == sorted(told.start.tolist())


def test_a_task_that_nobody_assigned_is_told_without_a_layer_after_a_while() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    store.add(pack(WORKER, 0, 1, [ran(1, 10**6, 2 * 10**6)]))
    for _ in range(6):
        growth.look(store)
    assert growth.since(0, 10).layer.tolist() == [0]


def test_rows_are_named_as_the_scheduler_names_the_worker() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    seen = (MARK, 1, "worker seen", "tcp://w:1 2 1000 al<i>ce\x1b")
    store.add(pack(SCHEDULER, 0, 1, [seen, assigned(1, "a"), assigned(2, "a")]))
    store.add(pack(WORKER, 0, 1, [ran(1, 1, 2), ran(2, 1, 2, thread=2)]))
    growth.look(store)
    name = "worker al<i>ce\\x1b"
    assert [line.label for line in growth.lines] == [f"{name}, thread 1", f"{name}, thread 2"]


def test_a_worker_that_was_restarted_is_not_folded_with_what_it_was() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    seen = [
        (MARK, 1, "worker seen", f"{address} 1 1000 a") for address in ("tcp://w:1", "tcp://w:2")
    ]
    store.add(pack(SCHEDULER, 0, 1, [*seen, assigned(1, "a"), assigned(2, "a")]))
    store.add(pack(WORKER, 0, 1, [ran(1, 1, 2)]))
    store.add(pack(WORKER._replace(pid=4, name="tcp://w:2"), 0, 1, [ran(2, 3, 4)]))
    growth.look(store)
    assert [line.parent for line in growth.lines] == ["worker a", "worker a (2)"]


def test_before_there_is_a_client_nothing_can_be_compared() -> None:
    store, growth = Store(), Growth()
    growth.look(store)
    store.add(pack(WORKER, 0, 1, [ran(1, 1, 2)]))
    growth.look(store)
    assert (len(growth), growth.lines) == (0, [])


def test_coroutines_of_one_thread_are_told_whole() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    store.add(pack(SCHEDULER, 0, 1, [assigned(i, "a") for i in range(9)]))
    ms = 10**6
    at_once = [ran(i, (100 + 50 * i) * ms, (500 + 50 * i) * ms) for i in range(8)]
    store.add(pack(WORKER, 0, 1, [*at_once, ran(8, 900 * ms, 1000 * ms)]))
    growth.look(store)
    told = growth.since(0, 10)
    assert (told.length * UNIT_NS).tolist() == [400 * ms] * 8 + [100 * ms]
    assert told.row.tolist() == [*range(8), 0]


def test_what_ends_after_twelve_hours_is_said_to_be_missing() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    store.add(pack(SCHEDULER, 0, 1, [assigned(1, "a"), assigned(2, "a")]))
    store.add(pack(WORKER, 0, 1, [ran(1, 1, 10**9)]))
    growth.look(store)
    assert (len(growth), growth.full) == (1, False)
    late = 2**32 * UNIT_NS
    store.add(pack(WORKER, 1, 2, [ran(2, late, late + 10**9)]))
    growth.look(store)
    assert (len(growth), growth.full) == (1, True)


def test_units_hold_half_a_day() -> None:
    assert 2**32 * UNIT_NS / 1e9 > 11 * 3600


def test_more_coroutines_of_a_thread_than_have_rows_are_counted() -> None:
    """They were boxes of no length, which nobody sees."""
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    store.add(pack(SCHEDULER, 0, 1, [assigned(i, "a") for i in range(SUBROWS + 3)]))
    store.add(pack(WORKER, 0, 1, [ran(i, 10 * MS, 900 * MS) for i in range(SUBROWS + 3)]))
    growth.look(store)
    assert (growth.since(0, 99).length * UNIT_NS).tolist() == [890 * MS] * SUBROWS
    assert growth.crowded == 3


# -- workers without stageprof --------------------------------------------------------------------


def guessed(run: int, worker: str, start: int) -> list[tuple[object, ...]]:
    """What the scheduler tells of a task of 900 ms on a worker that tells nothing."""
    return [
        (ASSIGN, run, start, worker, NO_CAUSE, "inc-1"),
        (RUN, run, start, start, start, start + 900 * MS, 0, 0, worker),
    ]


def test_tasks_of_workers_without_stageprof_are_in_rows_of_each() -> None:
    """They were all on sixteen threads of the scheduler, most of them without length."""
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, MS, []))
    rows = [row for run in range(40) for row in guessed(run, f"tcp://silent{run % 20}:1", MS)]
    seen = (MARK, 1, "worker seen", "tcp://silent0:1 2 0 alice")
    store.add(pack(SCHEDULER, 0, MS, [seen, *rows]))
    for _ in range(6):
        growth.look(store)
    told = growth.since(0, 99)
    assert (told.length * UNIT_NS).tolist() == [900 * MS] * 40
    labels = [growth.lines[row].label for row in told.row.tolist()]
    assert labels.count("worker alice (not instrumented)") == 2
    assert labels.count("tcp://silent7:1 (not instrumented)") == 2
    assert growth.crowded == 0


def test_what_was_guessed_of_a_worker_that_tells_of_its_own_is_not_told_twice() -> None:
    """Its scheduler does not know yet that it will: its first batch is on the way."""
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, MS, []))
    store.add(pack(SCHEDULER, 0, MS, guessed(1, "tcp://w:1", MS)))
    growth.look(store)
    store.add(pack(WORKER, 0, MS, [ran(1, MS, 900 * MS)]))
    for _ in range(6):
        growth.look(store)
    assert [line.label for line in growth.lines] == ["tcp://w:1, thread 1"]
    assert [growth.layers[i].name for i in growth.since(0, 9).layer.tolist()] == ["inc"]


def test_a_worker_that_was_found_to_tell_nothing_is_not_waited_for_again() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, MS, []))
    store.add(pack(SCHEDULER, 0, MS, guessed(1, "tcp://silent:1", MS)))
    for _ in range(6):
        growth.look(store)
    store.add(pack(SCHEDULER, 1, MS, guessed(2, "tcp://silent:1", 1000 * MS)))
    growth.look(store)
    assert len(growth) == 2


# -- clocks ---------------------------------------------------------------------------------------

HOUR = 3600 * 10**9


def pinged(t: int, off: int = 0) -> tuple[object, ...]:
    """A round trip to the scheduler of somebody whose clock is late by `off`."""
    return (PING, t - off, t, t - off, "tcp://s:1")


@pytest.mark.parametrize("off", [-240 * HOUR, -HOUR, 0, HOUR, 240 * HOUR])
def test_tasks_wait_for_the_clock_that_they_were_timed_by(off: int) -> None:
    """The first batch of a worker that joins comes before its first round trip."""
    start = 500 * HOUR
    far = WORKER._replace(host="elsewhere")
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, start, [pinged(start)]))
    store.add(pack(SCHEDULER, 0, start, [assigned(1, "a"), assigned(2, "a")]))
    growth.look(store)
    begin = start + 10 * MS - off
    store.add(pack(far, 0, begin + 90 * MS, [ran(1, begin, begin + 80 * MS)]))
    for _ in range(6):
        growth.look(store)
    assert len(growth) == 0
    assert growth.untimed
    more = [pinged(start + 95 * MS, off), ran(2, begin + 100 * MS, begin + 150 * MS)]
    store.add(pack(far, 1, begin + 190 * MS, more))
    growth.look(store)
    told = growth.since(0, 9)
    assert (told.start * UNIT_NS).tolist() == [10 * MS, 110 * MS]
    assert (told.length * UNIT_NS).tolist() == [80 * MS, 50 * MS]
    assert (growth.full, growth.untimed) == (False, False)
    assert growth.end == 200 * MS


def test_a_cluster_elsewhere_is_not_begun_with_before_its_clock_is_known() -> None:
    """The client's own round trips are still in its ring at the first look."""
    start, off = 500 * HOUR, 240 * HOUR
    scheduler = SCHEDULER._replace(host="elsewhere")
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, start, []))
    given = (ASSIGN, 1, start + off + 10 * MS, "tcp://w:1", NO_CAUSE, "a")
    store.add(pack(scheduler, 0, start + off + 20 * MS, [given]))
    growth.look(store)
    assert growth.end == 0
    ping = (PING, start + 30 * MS, start + off + 30 * MS, start + 30 * MS, "tcp://s:1")
    store.add(pack(CLIENT, 1, start + 40 * MS, [ping]))
    growth.look(store)
    assert growth.end == 40 * MS
