"""Times that cannot be, and times that hardly can: shown as they are, said, and harming no face."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stageprof
from replay.handmade import CLIENT, LANE, SCHEDULER, HandMade, ns
from stageprof_runtime.event import BLOCK, MARK, NO_CAUSE, RUN, Place

HOUR = 3_600_000.0


def a_day() -> stageprof.Recording:
    """Four tasks of thirty hours each, then many short ones."""
    made = HandMade(2, 2)
    graph, last = made.graph(0, 1, 2), -1
    for i in range(4):
        cause = -1 - graph
        last = made.run(i % 2, 2, 2 + 30 * HOUR, cause=cause, lead=(2, 2), thread=i // 2)
    for i in range(40):
        last = made.run(i % 2, 30 * HOUR + i * 100, 30 * HOUR + i * 100 + 90, cause=last)
    made.wait(0.5, 30 * HOUR + 5000, last, 30 * HOUR + 5000)
    return stageprof.Recording.of(made.recording(30 * HOUR + 5001))


def backward() -> stageprof.Recording:
    """Twenty tasks whose clock runs backward."""
    made = HandMade(2, 1)
    graph, last = made.graph(0, 1, 2), -1
    for i in range(20):
        last = made.run(i % 2, 500 - i * 20, 400 - i * 20, cause=-1 - graph, lead=(600, 700))
    made.wait(0.5, 600, last, 300)
    return stageprof.Recording.of(made.recording(700))


@pytest.mark.parametrize("made", [a_day, backward])
def test_the_account_adds_up_and_every_face_is_drawn(
    made: Callable[[], stageprof.Recording], tmp_path: Path
) -> None:
    """T24: days in one task, and clocks that run backward."""
    recording = made()
    stages = recording.stages()
    assert stages["wall_s"].sum() == pytest.approx(recording.wall)
    assert (stages["wall_s"] >= 0).all()
    assert (stages["busy_s"] >= 0).all()
    assert str(recording)
    recording.report(tmp_path / "r.html")
    for table in (recording.tasks, recording.layers, recording.gil, recording.critical_path):
        assert table() is not None


def test_a_task_of_a_day_has_its_length() -> None:
    tasks = a_day().tasks()
    assert (tasks["stop_s"] - tasks["start_s"]).max() == pytest.approx(30 * 3600)


def test_a_clock_that_went_backward_is_said() -> None:
    """T24: kept, counted as no time, and said."""
    recording = backward()
    said = "20 tasks end before they begin, and count as no time: wrong clock"
    assert recording.coverage()["problems"] == [said]
    assert said in str(recording)
    assert (recording.tasks()["duration_s"] == 0).all()


def test_of_times_that_can_be_nothing_is_said() -> None:
    assert a_day().coverage()["problems"] == []


def test_runs_that_are_each_others_cause_end() -> None:
    """No scheduler tells so; a file that somebody made may."""
    made = HandMade(1)
    made.run(0, 5, 5, cause=1)
    last = made.run(0, 5, 5, cause=0)
    made.wait(0, 10, last, 5)
    recording = made.recording(10)
    assert recording.stages()["wall_s"].sum() == pytest.approx(recording.wall)


def test_results_that_were_there_before_they_were_fetched_cover_no_instant_twice() -> None:
    """Nobody tells so, either."""
    made = HandMade(1)
    run = made.run(0, 5, 20, cause=-1 - made.graph(0, 1, 2), wanted=True)
    times = (ns(2), ns(100), LANE, "_gather", ns(20), ns(80), ns(30), f"task-{run}")
    made.rows_of(CLIENT).append((BLOCK, *times))
    path = made.recording(110).critical_path()
    assert path["seconds"].sum() == pytest.approx(0.11)
    assert (path["start_s"][1:].to_numpy() == path["stop_s"][:-1].to_numpy()).all()


@pytest.mark.parametrize("label", ["x", "", "-", "--1", "9" * 30])
def test_labels_that_are_no_numbers_are_read_all_the_same(label: str) -> None:
    made = HandMade(1)
    made._rows[CLIENT].append((MARK, ns(0), "region start", label))
    made._rows[SCHEDULER].append((MARK, ns(0), "loop thread", label))
    recording = made.recording(10)
    assert recording.stages()["wall_s"].sum() == pytest.approx(recording.wall)


def test_a_status_that_nobody_knows_is_another_one() -> None:
    made = HandMade(1)
    made.run(0, 1, 2, cause=NO_CAUSE, status=9)
    assert made.recording(10).tasks()["status"].tolist() == ["other"]


@pytest.mark.parametrize("first", [CLIENT, SCHEDULER])
def test_what_a_worker_tells_of_a_run_goes_before_its_schedulers_guess(first: Place) -> None:
    """In the first tenth of a second both tell; in which order they come is chance."""
    made = HandMade(1)
    run = made.run(0, 4, 9, cause=NO_CAUSE)
    guess = (RUN, run, *[ns(6)] * 3, ns(9), 0, 0, "tcp://host:10")
    made._rows[SCHEDULER].append(guess)
    made._rows = {first: made._rows[first]} | made._rows
    made._rows[SCHEDULER] = made._rows.pop(SCHEDULER)  # the worker's come before
    (task,) = made.recording(10).tasks().to_dict("records")
    assert (task["start_s"], task["thread"]) == (pytest.approx(0.004), 1)
