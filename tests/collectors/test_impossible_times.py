"""Times that cannot be, and times that hardly can: shown as they are, said, and harming no face."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import stageprof
from replay.handmade import HandMade

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
