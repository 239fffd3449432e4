"""Runs that last are told while they go on: they may never end, or their worker may be killed."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Event, wait

import clusters
import planted
from stageprof_runtime import ongoing
from stageprof_runtime.event import ONGOING
from stageprof_runtime.ongoing import LONG_NS, Ongoing
from stageprof_runtime.probes import execution
from stageprof_runtime.ring import Ring
from truth import record

S = 1_000_000_000
THREAD = 77


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """What the clock says; nothing else runs."""
    now = [0]
    monkeypatch.setattr(ongoing, "now_ns", lambda: now[0])
    execution.begun.clear()
    yield now
    execution.begun.clear()
    execution.pending.clear()


def observed(*keys: str) -> tuple[Ring, Ongoing]:
    """A worker that has these tasks, their runs numbered in order."""
    tasks: Any = {key: SimpleNamespace(run_id=run) for run, key in enumerate(keys)}
    worker = SimpleNamespace(state=SimpleNamespace(tasks=tasks), contact_address="tcp://w:1")
    ring = Ring()
    return ring, Ongoing(ring, worker)


def rows(ring: Ring) -> list[tuple[int, int, int]]:
    """Run, start and stop of each."""
    return [(row[1], row[4] // S, row[5] // S) for row in ring.take() if row[0] == ONGOING]


def test_a_run_is_told_when_it_lasts_and_again_and_more_seldom_as_it_goes_on(
    clock: list[int],
) -> None:
    ring, told = observed("task-1")
    execution.begun[THREAD] = "task-1", 0, 0
    for clock[0] in range(0, 100 * S, S // 2):
        told.tell()
    stops = [stop for _, _, stop in rows(ring)]
    assert stops[:3] == [1, 2, 3]
    assert 30 < len(stops) < 60
    assert stops[-1] > 94


def test_short_runs_cost_no_row(clock: list[int]) -> None:
    ring, told = observed("task-1")
    for clock[0] in range(0, 10 * S, S // 2):
        execution.begun[THREAD] = "task-1", clock[0] - LONG_NS // 2, 0
        told.tell()
    assert not rows(ring)


def test_in_the_end_all_are_told(clock: list[int]) -> None:
    ring, told = observed("task-1")
    execution.begun[THREAD] = "task-1", 0, 0
    clock[0] = S // 4
    told.end()
    assert rows(ring) == [(0, 0, 0)]


def test_what_it_had_before_it_began_is_told_with_it(clock: list[int]) -> None:
    ring, told = observed("task-1")
    execution.begun[THREAD], execution.pending["task-1"] = ("task-1", 3 * S, 0), (S, 2 * S)
    clock[0] = 5 * S
    told.tell()
    (row,) = ring.take()
    assert row == (ONGOING, 0, S, 2 * S, 3 * S, 5 * S, THREAD, 0, "tcp://w:1")


def test_tasks_of_other_workers_of_the_process_are_theirs_to_tell(clock: list[int]) -> None:
    ring, told = observed("task-1")
    execution.begun[THREAD] = "another", 0, 0
    clock[0] = 5 * S
    told.tell()
    assert not rows(ring)


def test_one_that_ends_meanwhile_has_its_own_row(
    clock: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ring, told = observed("task-1")
    execution.begun[THREAD] = "task-1", 0, 0
    monkeypatch.setattr(ongoing, "used", lambda thread: execution.begun.pop(thread)[2])
    clock[0] = 5 * S
    told.tell()
    assert not rows(ring)


@pytest.mark.smoke
def test_a_call_that_gave_up_waited_for_a_task_that_goes_on() -> None:
    """It was the transfer of its data: nobody said that it had begun."""
    with clusters.separate(2, 1) as client:
        over = Event("over", client=client)
        client.submit(planted.identity, 1).result()
        made = client.submit(planted.identity, 2)
        wait(made)

        def program() -> None:
            task = client.submit(planted.hold, made, "over")
            with pytest.raises(TimeoutError):
                task.result(timeout=2)

        recording = record(program)
        over.set()
        assert recording.stages()["share"]["execution"] > 0.9
        tasks = recording.tasks()
        held = tasks[tasks["key"].str.startswith("hold")]
        assert held["duration_s"].item() > 0.8 * recording.wall
        assert held["status"].item() == "running"


def test_nothing_is_left_of_a_run_that_has_ended() -> None:
    with clusters.inside(1, 1) as client:
        record(lambda: client.submit(planted.identity, 1).result())
        assert not execution.begun
