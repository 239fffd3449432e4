"""What was lost with a worker is what its threads can have done; its queue was no work."""

from __future__ import annotations

import pytest

from replay.handmade import SCHEDULER, HandMade, ns
from stageprof_collectors.account.cut_off import took
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import ASSIGN, FINISH, STATUS

LOST = STATUS.index("lost")


def lost(number: int, threads: int = 1, *, told: int = 0) -> Recording:
    """A worker is given many tasks at 0; it goes at 1000 ms, and another does them again.

    Of the first `told` it tells: each took 300 ms and ended well.
    """
    made = HandMade(2, threads)
    graph = made.graph(0, 0, 0)
    for i in range(number):
        if i < told:
            made.run(0, 300 * i, 300 * (i + 1), cause=-1 - graph, lead=(0, 0), key=f"task-{i}")
            continue
        run, made._runs = made._runs, made._runs + 1
        name = made._workers[0].name
        rows = made.rows_of(SCHEDULER)
        rows.append((ASSIGN, run, ns(0), name, -1 - graph, f"task-{i}"))
        rows.append((FINISH, run, ns(1000), LOST, 0, ""))
    for i in range(told, number):
        start = 1000.0 + 100 * (i - told)
        made.run(1, start, start + 100, cause=-1 - graph, lead=(1000, 1000), key=f"task-{i}")
    return made.recording(5000)


@pytest.mark.parametrize(
    ("threads", "told", "seconds"), [(1, 0, 1.0), (2, 0, 2.0), (1, 2, 0.4), (4, 0, 4.0)]
)
def test_no_more_was_lost_than_the_workers_threads_can_have_done(
    threads: int, told: int, seconds: float
) -> None:
    """It was a second for each of the tasks in its queue."""
    again = lost(20, threads, told=told).recomputed()

    assert again["seconds"].sum() == pytest.approx(seconds)
    assert again["reason"].tolist() == ["lost"] * threads
    assert again["runs"].tolist() == [2] * threads


def test_a_key_that_is_made_again_is_work_done_twice() -> None:
    """Its result was let go of, and wanted once more: all but the last run was for nothing."""
    made = HandMade(2)
    first, again = made.graph(0, 0, 0), made.graph(600, 600, 600)
    made.run(0, 0, 300, cause=-1 - first, key=("x-1", 0))
    made.run(0, 300, 500, cause=-1 - first, key=("y-1", 0))
    made.run(1, 600, 1000, cause=-1 - again, key=("x-1", 0))

    found = made.recording(1000).recomputed()

    assert found.drop(columns="seconds").to_dict("records") == [
        {"key": "('x-1', 0)", "layer": "x-1", "runs": 2, "reason": "computed again"}
    ]
    assert found["seconds"].tolist() == pytest.approx([0.3])


def test_what_was_told_is_as_long_as_it_was_told() -> None:
    recording = lost(4, told=2)

    runs = took(recording.timeline)[:4] / 1e9

    assert runs.tolist() == pytest.approx([0.3, 0.3, 0.4, -1e-9])


def test_a_worker_that_comes_back_to_its_address_has_its_threads_again() -> None:
    """What it does then is no reason to have been busy before."""
    made = HandMade(1)
    graph = made.graph(0, 0, 0)
    rows, name = made.rows_of(SCHEDULER), made._workers[0].name
    made._runs = 1
    rows.append((ASSIGN, 0, ns(0), name, -1 - graph, "task"))
    rows.append((FINISH, 0, ns(1000), LOST, 0, ""))
    made.run(0, 2000, 2500, cause=0, key="task")

    assert made.recording(3000).recomputed()["seconds"].tolist() == pytest.approx([1.0])
