"""The table of computations, and the time to the first task, of recordings made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from replay.handmade import CLIENT, LANE, SCHEDULER, HandMade, ns
from stageprof_collectors.account.first_task import FirstTask, first_task
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import GRAPH, OWNER, SAMPLED, SPAN, SUBMIT
from stageprof_runtime.stage import STEP, Stage
from stageprof_ui.columns import overview


def in_line(*, told: bool = True, build: float = 10.0) -> Recording:
    """Four submits of a task each, one thread: each but the first runs when the one before ended.

    The first is taken in 5 ms after it was handed over; `told` is False as older versions had it.
    """
    made = HandMade(workers=1)
    made.span("graph.dump", 0, build)
    graphs = [made.graph(build + i, build + i, build + 5 + i) for i in range(4)]
    run, at = -1, build + 5.0
    for graph in graphs:
        cause = -1 - graph if run < 0 else run
        run = made.run(0, at, at + 100, cause=cause, needs=[-1] if run >= 0 else [])
        if told:
            made._rows[SCHEDULER].append((OWNER, run, graph))
        at += 100
    made.wait(build + 5, at, run, at)
    return made.recording(at)


def test_a_run_is_of_the_graph_that_brought_it() -> None:
    recording = in_line()

    assert recording.owners.tolist() == [0, 1, 2, 3]
    assert recording.replay.owner.tolist() == [0, 1, 2, 3]
    assert recording.computations()["tasks"].tolist() == [1, 1, 1, 1]


def test_where_nothing_is_said_a_run_is_of_the_graph_that_led_to_it() -> None:
    """So older recordings have it."""
    recording = in_line(told=False)

    assert recording.owners.tolist() == [0, 0, 0, 0]
    assert recording.computations()["tasks"].tolist() == [4, 0, 0, 0]


def test_what_a_run_leads_to_is_of_the_graph_that_was_said_of_it() -> None:
    made = HandMade(workers=1)
    one, two = made.graph(0, 1, 2), made.graph(1, 2, 3)
    first = made.run(0, 3, 10, cause=-1 - one)
    second = made.run(0, 10, 20, cause=first, needs=[-1])
    made._rows[SCHEDULER].append((OWNER, second, two))
    made.run(0, 20, 30, cause=second)
    stranger = made.run(0, 30, 40, cause=-1 - two)
    made._rows[SCHEDULER].append((OWNER, stranger, -1))

    recording = made.recording(40)

    assert recording.owners.tolist() == [one, two, two, -1]
    assert recording.timeline.graph_rows.tolist() == [0, 1, 1, -1]
    assert recording.computations()["tasks"].tolist() == [1, 2]


def test_a_coroutines_call_begins_with_what_it_does_itself_on_the_thread_of_all() -> None:
    """An async region's hand-overs are told as its own, what is dumped for them as its thread's."""
    made, other, region = HandMade(), LANE, -3
    for lane, at in ((other, 10), (region, 600), (other, 1000)):
        made.span("graph.dump", at, at + 5)
        made.graph(at + 5, at + 6, at + 7)
        rows = made.rows_of(CLIENT)
        rows[-1] = (*rows[-1][:5], lane, *rows[-1][6:])

    computations = made.broken_off(2000, region).computations()

    assert computations["start_s"].tolist() == pytest.approx([0.01, 0.6, 1.0])


@pytest.mark.parametrize("tasks", [0, 1])
def test_a_graph_that_came_before_it_was_handed_over_took_no_less_than_no_time(tasks: int) -> None:
    """The error of a clock is as large as a quick message takes."""
    made = HandMade(workers=1)
    graph = made.graph(10, 9, 9.2)
    for _ in range(tasks):
        made.run(0, 9.5, 9.8, cause=-1 - graph)

    [computation] = made.recording(20).computations().to_dict("records")

    assert computation["duration_s"] == 0
    assert not tasks or computation["first_task_s"] == 0


def test_a_pool_that_is_made_before_a_local_graph_is_handed_over_is_a_part_of_the_call() -> None:
    """As a span it would be the loop of a call before it."""
    made = HandMade()
    made.span("expr", 10, 20)
    rows, number = made.rows_of(CLIENT), 2**40
    rows.append((SPAN, STEP["local.loop"], ns(20), ns(50), LANE, "", SAMPLED))
    rows.append((SUBMIT, number, ns(51), 1, 0, LANE, "etl.py", 1))
    rows.append((GRAPH, number, ns(51), ns(52), 1, 1, "local", -1))

    assert made.recording(100).computations()["start_s"].tolist() == pytest.approx([0.01])


def test_waiting_behind_tasks_of_others_is_no_time_to_the_first_task() -> None:
    """The last submit's task began after more than 300 ms; nothing ran for the first's 15 ms."""
    recording = in_line()

    first = first_task(recording)

    assert recording.computations()["first_task_s"].max() > 0.3
    assert first is not None
    assert first.seconds == pytest.approx(0.015)
    assert first.of == 4
    assert dict(first.split)[Stage.SERIALIZATION] == pytest.approx(0.01)


def test_a_long_way_of_a_graph_counts_from_the_end_of_what_ran_meanwhile() -> None:
    """A graph of 50 ms of building, 20 of which another's task ran."""
    made = HandMade(workers=1)
    one = made.graph(0, 1, 2)
    made.run(0, 5, 25, cause=-1 - one)
    made.span("expr", 6, 55)
    two = made.graph(55, 56, 57)
    made.run(0, 60, 70, cause=-1 - two)

    first = first_task(made.recording(70))

    assert first is not None
    assert first.seconds == pytest.approx(0.035)
    assert np.isclose(sum(part for _, part in first.split), 0.035, rtol=0.02)


def test_without_a_task_there_is_no_first_one() -> None:
    made = HandMade(workers=1)
    assert first_task(made.recording(10)) is None
    made.graph(0, 1, 2)
    assert first_task(made.recording(10)) is None


@pytest.mark.parametrize(("of", "said"), [(1, ""), (41, "the longest of 41 computations")])
def test_the_page_says_of_how_many_it_is_the_longest(of: int, said: str) -> None:
    found = overview._first(FirstTask(0.027, "etl.py:22", of, ()))

    assert found is not None
    assert "etl.py:22" in found["where"]
    assert found["where"].count("(") == bool(said)
    assert said in found["where"]


def test_work_is_for_the_graph_that_it_led_to_or_was_done_for() -> None:
    """Two graphs of one line: 30 ms and 10 ms on the client before, 100 ms and 40 ms of tasks."""
    made = HandMade(workers=1)
    made.span("expr", 0, 30)
    one = made.graph(30, 31, 32)
    first = made.run(0, 40, 140, cause=-1 - one)
    made.wait(30, 140, first, 140)
    made.span("build", 150, 160, "etl.py:7")
    two = made.graph(160, 161, 162)
    last = made.run(0, 170, 210, cause=-1 - two)
    made.wait(160, 210, last, 210)
    made.span("build", 220, 290, "etl.py:7")

    recording = made.recording(300)

    worked = recording.computations()["busy_s"]
    assert worked.tolist() == pytest.approx([0.13, 0.05])
    rest = recording.stages()["busy_s"].sum() - worked.sum()
    assert rest == pytest.approx(0.07)  # what was built last was for none of them


def test_a_graph_without_tasks_has_what_was_done_for_it() -> None:
    """As one whose results were there already."""
    made = HandMade(workers=1)
    made.span("graph.dump", 0, 10)
    made.graph(10, 11, 12)

    assert made.recording(20).computations()["busy_s"].tolist() == pytest.approx([0.01])
