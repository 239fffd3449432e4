"""A row that a full ring lost costs the account no more than its run, on a cluster as well."""

from __future__ import annotations

import pytest

from replay.handmade import SCHEDULER, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import ASSIGN, FINISH, GRAPH, RUN

#: tasks of 200 ms, each of which needs the one before
TASKS = 5


def chain(table: int, lost: int, *, untold: bool = False) -> Recording:
    """A row of one of the tasks is missing that the scheduler told; `untold`: its worker's, too."""
    made, at = HandMade(workers=1), 5.0
    cause = -1 - made.graph(0, 1, 2)
    for i in range(TASKS):
        cause = made.run(
            0, at + 2, at + 202, cause=cause, lead=(at, at + 1), finished=at + 204,
            wanted=i == TASKS - 1,
        )  # fmt: skip
        at += 206
    made.wait(1, at + 5, cause, at)
    for place in (SCHEDULER, *made._workers[:untold]):
        rows = made.rows_of(place)
        rows[:] = [row for row in rows if row[:2] not in ((table, lost), (RUN, lost))]
    return made.recording(at + 5)


@pytest.mark.parametrize("untold", [False, True])
@pytest.mark.parametrize("lost", range(TASKS))
def test_where_the_end_of_a_run_was_lost_the_path_goes_on_before_it(
    lost: int, *, untold: bool
) -> None:
    """All before it was `place` once."""
    steps = chain(FINISH, lost, untold=untold).steps().groupby("step")["wall_s"].sum()

    assert steps["compute"] == pytest.approx(0.2 * TASKS, abs=0.01)
    assert steps["place"] < 0.02


@pytest.mark.parametrize("lost", range(TASKS))
def test_where_nobody_said_that_a_run_was_assigned_no_other_is_in_doubt(lost: int) -> None:
    steps = chain(ASSIGN, lost).steps().groupby("step")["wall_s"].sum()

    assert steps["compute"] == pytest.approx(0.2 * (TASKS - 1), abs=0.005)


def test_a_run_whose_end_was_lost_is_no_run_that_goes_on() -> None:
    """Of a cluster recorded from outside all until the recording's end was its computing."""
    made = HandMade(workers=1)
    first = made.run(0, 0, 100, cause=-1 - made.graph(0, 0, 0))
    made.run(0, 100, 200, cause=first, wanted=True)
    rows = made.rows_of(SCHEDULER)
    rows[:] = [row for row in rows if row[:2] != (FINISH, first)]

    recording = made.recording(1000, attached=True)

    assert recording.stages()["wall_s"]["execution"] == pytest.approx(0.2)
    assert recording.tasks()["status"].tolist() == ["other", "memory"]


def test_a_run_whose_cause_was_lost_was_not_led_to_by_another_program_s() -> None:
    """Who shared the cluster had its tasks in the account, as the last that ended before."""
    recording = beside_another()

    keys = set(recording.critical_path()["key"])
    assert keys == {"task-0", "task-2"}


def beside_another() -> Recording:
    """Three tasks, one after another; of the second nobody said that it was assigned.

    Meanwhile tasks of another client run on the other worker.
    """
    made = HandMade(workers=2)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 100, cause=-1 - graph)
    lost = made.run(0, 100, 200, cause=first)
    last = made.run(0, 200, 300, cause=lost, wanted=True)
    made.rows_of(SCHEDULER).append((GRAPH, 9, ns(0), ns(0), 2, 2, "Client-2", -1))
    made.run(1, 0, 90, cause=-10)
    made.run(1, 90, 190, cause=-10)
    rows = made.rows_of(SCHEDULER)
    rows[:] = [row for row in rows if row[:2] != (ASSIGN, lost)]
    made.wait(0, 300, last, 300)
    return made.recording(300)
