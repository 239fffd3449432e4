"""The rule late-workers: C21."""

from __future__ import annotations

import pytest
from distributed import Client

from findings.asking import asked, one, run
from findings.crews import Crewed, side_by_side
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.late_workers import RULE


def recorded(came: float, tasks: int = 10) -> Recording:
    """Tasks of 100 ms on one worker; the other comes so late that it gets nothing."""
    made = Crewed(2)
    end = side_by_side(made, [(0, 100.0)] * tasks)
    made.late(1, came)
    return made.recording(end)


def test_a_worker_that_comes_late_is_found_with_what_its_being_there_would_save() -> None:
    """C21: with both from the start half the time; the wait, if there is one, is on top."""
    found = one(RULE, recorded(300))

    assert found.evidence["workers_late"] == 1
    assert found.evidence["last_came_after_s"] == pytest.approx(0.3)
    assert found.saving_s[1] == pytest.approx(0.5, abs=0.01)
    assert found.saving_s[0] <= 0.2
    assert "1 of 2 workers came up to 300 ms after" in found.headline


def test_the_wait_is_free_where_the_program_had_something_else_to_do() -> None:
    """Workers that are asked for at the beginning come while the program does its own work."""
    made = Crewed(2)
    graph = made.graph(400, 400, 400, wanted=10)
    runs: list[int] = []
    last = -1 - graph
    for i in range(10):
        start = 400.0 + 100 * i
        runs.append(
            made.run(
                0,
                start,
                start + 100,
                cause=last,
                needs=[-1] if runs else [],
                lead=(start,) * 2,
                wanted=True,
            )
        )
        last = runs[-1]
    made.late(1, 700)
    made.wait(400, 1400, runs[-1], 1400)
    low, high = one(RULE, made.recording(1400)).saving_s
    assert low > 0.1  # placed anew, tasks would have gone to the late worker as it was
    assert high == pytest.approx(0.5, abs=0.05)


def without_any(*, first: float = 0, left: float = 200, back: float = 800) -> Recording:
    """A task of 100 ms, then one that waits for a worker, for the first has gone."""
    made = Crewed(2)
    one_, other = 1000 + first, 1000 + back
    made.late(0, one_)
    made.left(0, 1000 + left)
    made.late(1, other)
    graph = made.graph(1000, 1000, 1000)
    run_ = made.run(0, one_, one_ + 100, cause=-1 - graph, wanted=True)
    made.wait(1000, one_ + 100, run_, one_ + 100)
    graph = made.graph(1300, 1300, 1300)
    run_ = made.run(1, other, other + 100, cause=-1 - graph, wanted=True)
    made.wait(1300, other + 100, run_, other + 100)
    return made.recording(other + 100)


def test_tasks_that_wait_because_the_last_worker_went_are_found() -> None:
    """An adaptive cluster that has let go of all of them: it was "no known cause"."""
    found = one(RULE, without_any(), threads=2)
    assert found.headline.startswith("There was no worker while tasks of `task`")
    assert found.cost_s == pytest.approx(0.5)
    assert found.saving_s == pytest.approx((0.5, 0.5))
    assert "cluster.adapt(minimum=1" in found.fix.code


def test_the_first_wait_for_a_worker_is_not_surely_saved() -> None:
    """It has to be started some time."""
    found = one(RULE, without_any(first=150), threads=2)
    assert found.cost_s == pytest.approx(0.65)
    assert found.saving_s == pytest.approx((0.5, 0.65))


def test_a_cluster_without_workers_that_nobody_waits_for_is_no_finding() -> None:
    assert asked(RULE, without_any(left=290, back=310), threads=2) == []


def test_workers_that_were_there_are_not_late() -> None:
    assert asked(RULE, recorded(0)) == []


def test_a_worker_that_comes_at_once_costs_nothing_to_speak_of() -> None:
    assert asked(RULE, recorded(60, tasks=100)) == []


def test_a_few_late_threads_of_many_are_not_worth_a_word() -> None:
    made = Crewed(8)
    end = side_by_side(made, [(worker, 500.0) for worker in range(7)])
    made.late(7, 300)

    assert asked(RULE, made.recording(end)) == []


def test_its_limit_can_be_set() -> None:
    assert asked(RULE, recorded(300), threads=0.8) == []


def test_the_fix_waits_for_all_workers(client: Client) -> None:
    found = one(RULE, recorded(300))

    names = run(found)

    assert names["client"] is client
    assert len(client.scheduler_info(n_workers=-1)["workers"]) == 2
