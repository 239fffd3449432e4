"""What the path waited for where a worker had a task and gave it back before it ran."""

from __future__ import annotations

import numpy as np
import pytest

from replay.handmade import CLIENT, HandMade, ns
from stageprof_collectors.comparison.counts import counted
from stageprof_collectors.findings.crowd import Kind
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.relief import relief
from stageprof_collectors.replay.toll import toll
from stageprof_collectors.summary import summarize
from stageprof_runtime.event import MARK, OBJECT, SPAN, STATUS
from stageprof_runtime.stage import STEP


def stolen(
    *, dumped: bool = False, other: bool = False, needs: bool = True
) -> tuple[Recording, int]:
    """A worker has a task from 100 to 900 ms, another runs it then; and the place of that other.

    It may be pickling from 200 to 800 what the first is to have, and the first be at another task.
    """
    made = HandMade(2)
    graph = made.graph(0, 0, 0)
    part = made.run(1, 0, 100, cause=-1 - graph, key="part-1", lead=(0, 0))
    if other:
        made.run(0, 200, 800, cause=-1 - graph, key="other-1", lead=(0, 0))
    if dumped:
        rows = made.rows_of(made._workers[1])
        rows.append((MARK, ns(0), "loop thread", "5"))
        rows.append((SPAN, STEP["data.dump"], ns(200), ns(800), 5, made._workers[0].name, 100))
    on = [part] if needs else [-1]
    back = made.taken_back(0, 100, 900, cause=part, key="sum-1", needs=on)
    last = made.run(1, 900, 1000, cause=back, key="sum-1", needs=on, lead=(900, 900), wanted=True)
    made.wait(0, 1000, last, 1000)
    recording = made.recording(1000)
    places = [place.name for place in recording.store.places]
    return recording, places.index(made._workers[1].name)


@pytest.mark.parametrize(
    ("dumped", "other", "needs", "stages"),
    [
        (True, False, True, {"serialization": 0.6, "communication": 0.2}),
        (False, True, True, {"execution": 0.6, "communication": 0.2}),
        (True, True, True, {"serialization": 0.6, "communication": 0.2}),
        (False, False, True, {"communication": 0.8}),
        (True, False, False, {"communication": 0.8}),
    ],
)
def test_it_waited_for_data_that_were_pickled_or_for_its_thread_or_else_was_under_way(
    dumped: bool, other: bool, needs: bool, stages: dict[str, float]
) -> None:
    """All of it was "wait.thread" once, of a worker whose thread had nothing to do."""
    recording, _ = stolen(dumped=dumped, other=other, needs=needs)
    walls = recording.stages()["wall_s"]
    ran = {"execution": 0.2}
    for stage in ("serialization", "communication", "execution"):
        expected = stages.get(stage, 0.0) + ran.get(stage, 0.0)
        assert walls[stage] == pytest.approx(expected, abs=1e-6), stage


def test_it_is_no_task_that_ran() -> None:
    """Two tasks: `tasks()` has three rows, for the third was on its way to a worker."""
    recording, _ = stolen()
    layers = recording.layers()
    assert layers["tasks"].sum() == 2
    assert "2 tasks in 1 computation" in summarize(recording).facts
    assert counted(recording)["tasks"] == 2
    assert sum(len(crowd.rows) for kind in Kind if (crowd := recording.crowds.of(kind))) == 2
    assert len(recording.tasks()) == 3


def test_an_object_of_a_layer_of_which_nothing_ran_is_the_graphs() -> None:
    """It was a division by the number of that layer's tasks."""
    made = HandMade(2)
    graph = made.graph(0, 0, 0)
    made.taken_back(0, 0, 900, cause=-1 - graph, key=f"price-{'1a' * 16}", needs=[-1])
    last = made.run(1, 900, 1000, cause=-1 - graph, key="sum-1", lead=(900, 900), wanted=True)
    name = f"price-{'2b' * 16}"
    row = ("int", name, "argument 1", "x", "etl.py", 3, 1000, 1, 1, 1, 1000)
    made._rows[CLIENT].append((OBJECT, ns(0), 1, 0, *row))
    made._rows[CLIENT].append((SPAN, STEP["graph.dump"], ns(0), ns(0.5), 1, "", 1000))
    made.wait(0, 1000, last, 1000)
    assert made.recording(1000).layers()["tasks"].sum() == 1


def test_without_what_kept_its_data_it_is_shorter_by_that() -> None:
    """The replay and the account agree: 600 of the 800 ms go."""
    recording, place = stolen(dumped=True)
    change = relief(recording, {place: [(ns(200), ns(800))]})

    assert toll(recording, change) == pytest.approx(0.6, abs=1e-6)
    low, high = recording.replay.saving(change)
    assert low == pytest.approx(0.6, abs=0.02)
    assert high == pytest.approx(0.6, abs=0.02)
    assert np.all(np.asarray(change.begin) == 1.0)


def test_behind_a_task_that_never_ended_it_waited_for_its_thread() -> None:
    """Tasks that wait for others in their threads, until these are cancelled: a deadlock."""
    made = HandMade(1)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 100, cause=-1 - graph, lead=(0, 0))
    made.goes_on(0, 100, cause=first)
    back = made.taken_back(0, 200, 900, cause=first, needs=[-1])
    last = made.run(0, 900, 1000, cause=back, lead=(900, 900), needs=[-1], wanted=True)
    made.wait(0, 1000, last, 1000)
    steps = made.recording(1000).steps().set_index("step")["wall_s"]
    assert steps["wait.thread"] == pytest.approx(0.7, abs=0.01)


def test_a_computation_does_not_count_it() -> None:
    """Nor is it its first task, which began when another worker ran it."""
    made = HandMade(2)
    graph = made.graph(0, 0, 0)
    back = made.taken_back(0, 10, 500, cause=-1 - graph, key="sum-1")
    last = made.run(1, 500, 900, cause=back, key="sum-1", lead=(500, 500), wanted=True)
    made.wait(0, 900, last, 900)
    (row,) = made.recording(1000).computations().to_dict("records")
    assert row["tasks"] == 1
    assert row["first_task_s"] == pytest.approx(0.5)


def cancelled(*, early: float = 0.0) -> Recording:
    """A task runs from 100 to 900 ms and is cancelled at 300; another one runs after it.

    The worker's clock is `early` ms early.
    """
    made = HandMade(1)
    graph, back = made.graph(0, 0, 0), STATUS.index("released")
    came, cause = (100, 100 - early), -1 - graph
    made.run(0, 100 - early, 900 - early, cause=cause, lead=came, finished=300, status=back)
    last = made.run(0, 900 - early, 1000 - early, cause=cause, lead=came, finished=1000)
    made.wait(0, 1000, last, 1000)
    return made.recording(1000)


def test_what_is_cancelled_while_it_runs_goes_on() -> None:
    """No worker can end a function that runs: its thread is not free before, and it was work."""
    recording = cancelled()

    assert recording.tasks()["duration_s"].tolist() == pytest.approx([0.8, 0.1])
    assert recording.stages()["busy_s"]["execution"] == pytest.approx(0.9)
    [row] = recording.recomputed().to_dict("records")
    assert (row["reason"], row["seconds"]) == ("taken back", pytest.approx(0.8))


def test_what_is_cancelled_while_it_runs_bends_no_clock() -> None:
    """That it stopped long after the scheduler was done with it says nothing of its clock."""
    starts = cancelled(early=40).tasks()["start_s"]

    assert starts.tolist() == pytest.approx([0.1, 0.9])
