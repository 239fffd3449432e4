"""Several recordings in one process: the process has one watch, and each has what it saw."""

from __future__ import annotations

import time

import stageprof
from stageprof_runtime import made, process
from stageprof_runtime.event import LINE, MARK
from stageprof_runtime.patch import Emit, Undo
from stageprof_runtime.probes import gil, layers
from stageprof_runtime.ring import Ring

#: Seconds of holding, a hundred looks.
SPIN_S = 1.5


def spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def test_one_within_the_other_and_both_know_who_held_the_gil() -> None:
    with stageprof.profile() as outer:
        spin(SPIN_S / 3)
        with stageprof.profile() as inner:
            spin(SPIN_S)
    for recording in (outer.recording, inner.recording):
        assert set(recording.timeline.gil.sources.values()) == {"watch"}
        frame = recording.gil()
        held = frame[frame["thread"] == "MainThread"]["hold_s"].sum()
        assert held > SPIN_S / 2
    assert inner.recording.wall < outer.recording.wall


def rows(ring: Ring) -> list[tuple[object, ...]]:
    return [row for row in ring.take() if row[0] == MARK]


def test_each_session_gets_a_row_of_the_process_once() -> None:
    rings = [Ring() for _ in range(3)]
    leaves = [
        process.join("client", rings[0], [], "a"),
        process.join("worker", rings[1], [], "a"),
        process.join("worker", rings[2], [], "b"),
    ]
    process.EMIT.row("any", (MARK, 1, "x", ""))
    assert [len(rows(ring)) for ring in rings] == [1, 0, 1]
    leaves[0]()
    process.EMIT.row("any", (MARK, 1, "x", ""))
    assert [len(rows(ring)) for ring in rings] == [0, 1, 1]
    process.EMIT.row("worker", (MARK, 1, "x", ""))
    assert [len(rows(ring)) for ring in rings] == [0, 1, 1]
    for leave in leaves:
        leave()
    assert process.installed() == []


def test_who_comes_later_is_told_what_it_missed() -> None:
    told: list[str] = []

    def install(emit: Emit) -> Undo:
        process.again[install] = lambda _: told.append("again")
        return lambda: None

    first = process.join("client", Ring(), [install], "a")
    assert told == []
    second = process.join("client", Ring(), [install], "b")
    assert told == ["again"]
    second()
    first()
    assert install not in process.again
    assert process.failed == {}


def test_only_the_ring_that_joins_is_told_and_no_more_than_it_holds() -> None:
    """The names that were made before; prefixes last, for they say most."""
    outer, inner = Ring(), Ring(capacity=100)
    leave = process.join("client", outer, [layers.install], "a")
    lines = made.known()
    assert lines is not None
    for i in range(80):
        lines.made(f"other-{i}", (f"etl{i % 2}.py", 1))
    for i in range(10):
        lines.made(f"p{i}-1", ("etl.py", i))
    before = len(outer)
    leave_inner = process.join("client", inner, [layers.install], "b")
    rows = [row for row in inner.take() if row[0] == LINE]
    leave_inner()
    assert len(outer) == before
    leave()
    assert len(rows) == 50
    assert [row[-1] for row in rows[-11:]] == [1] * 11
    assert [row[-1] for row in rows[:39]] == [0] * 39


def test_one_that_begins_as_the_others_watch_ends_has_one_of_its_own() -> None:
    """The session of one client ends while another's begins: the loop goes on in between."""
    first = process.join("client", Ring(), [gil.install], "a")
    (ending,) = gil.watching
    ending.end()
    second = process.join("client", Ring(), [gil.install], "b")
    assert [watcher.is_over for watcher in gil.watching] == [True, False]
    first()
    second()
    assert gil.watching == []
