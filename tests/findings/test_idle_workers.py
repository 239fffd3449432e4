"""The rule idle-workers: C23, C28 (pieces against threads), B27."""

from __future__ import annotations

import pytest
from distributed import wait

import clusters
from findings.asking import asked, one, run
from findings.crews import Crewed, side_by_side
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.idle_workers import RULE


def lonely(lengths: list[tuple[int, float]], workers: int = 2) -> Recording:
    made = Crewed(workers)
    return made.recording(side_by_side(made, lengths))


def test_one_task_for_two_threads_is_found_with_what_the_other_would_save() -> None:
    """C28: at worst the second thread is worth half of the first, at best as much."""
    found = one(RULE, lonely([(0, 900)]))

    assert found.evidence["threads_idle"] == 1
    assert found.evidence["why"] == "too few tasks"
    assert found.saving_s == pytest.approx((0.3, 0.45), abs=0.01)
    assert found.cost_s == pytest.approx(0.9)
    assert "1 of 2 threads" in found.headline


@pytest.mark.parametrize(
    ("lengths", "fires"),
    [
        ([(0, 900), (1, 900)], False),
        ([(0, 900), (1, 500)], False),
        ([(0, 900), (1, 300)], True),
    ],
)
def test_it_fires_where_a_thread_is_idle_for_more_than_half_of_the_others_time(
    lengths: list[tuple[int, float]], fires: bool
) -> None:
    assert bool(asked(RULE, lonely(lengths))) is fires


def test_a_single_thread_is_never_idle_beside_others() -> None:
    assert asked(RULE, lonely([(0, 900)], workers=1)) == []


def test_threads_beyond_the_cpus_would_save_nothing() -> None:
    made = Crewed(4)
    for worker in range(4):
        made.cpus(worker, 1)
    end = side_by_side(made, [(0, 900)])

    assert asked(RULE, made.recording(end)) == []


def in_line() -> Finding:
    """The finding on two workers one of which has all tasks."""
    made = Crewed(2)
    graph = made.graph(0, 0, 0, wanted=8)
    for i in range(8):
        start = 100.0 * i
        made.run(0, start, start + 100, cause=-1 - graph, lead=(0, 0), key=f"work-{i}", wanted=True)
    made.wait_for(0, 800, "work-7")
    return one(RULE, made.recording(800))


def test_tasks_that_stand_in_line_elsewhere_are_another_reason() -> None:
    """Data in one place, or a restriction: the scheduler could not give them to the other."""
    found = in_line()

    assert found.evidence["why"] == "tasks in line on other workers"
    assert found.saving_s[1] == pytest.approx(0.4, abs=0.05)


@pytest.mark.cluster
def test_the_fix_puts_what_lies_on_one_worker_on_all() -> None:
    with clusters.separate() as client:
        first, *_ = client.scheduler_info(n_workers=-1)["workers"]
        pieces = client.map(abs, range(-6, 0), workers=[first])
        wait(pieces)

        names = run(in_line(), pieces=pieces)

        wait(names["pieces"])
        held = client.who_has(names["pieces"])
        assert len({place for places in held.values() for place in places}) == 2
        assert client.gather(names["pieces"]) == [6, 5, 4, 3, 2, 1]


def test_a_straggler_has_a_finding_of_its_own() -> None:
    assert asked(RULE, lonely([*[(0, 100.0)] * 9, (1, 4000)])) == []


def test_late_workers_have_a_finding_of_their_own() -> None:
    made = Crewed(2)
    end = side_by_side(made, [(0, 900)])
    made.late(1, 500)

    assert asked(RULE, made.recording(end)) == []


def test_the_fix_gives_several_tasks_the_work_of_one() -> None:
    found = one(RULE, lonely([(0, 900)]))

    names = run(found, work=sum, items=list(range(10)))

    assert sum(names["results"]) == 45
    assert len(names["results"]) >= 2
