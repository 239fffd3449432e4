"""Who waits for a scheduler whose event loop is held waits for the scheduler, not for messages."""

from __future__ import annotations

import pytest

from replay.handmade import SCHEDULER, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import SAMPLE


def held(seconds: float, name: str = "loop.stall_s") -> Recording:
    """A run's end is reported 400 ms after it; until then the loop stood still so long."""
    made = HandMade(workers=1)
    graph = made.graph(0, 0, 0)
    run = made.run(0, 0, 100, cause=-1 - graph, key=("x", 0), finished=500, wanted=True)
    made.rows_of(SCHEDULER).append((SAMPLE, ns(500), name, seconds))
    made.wait(0, 500, run, 500)
    return made.recording(500)


@pytest.mark.parametrize(
    ("stall_s", "place_s"),
    [(0.3, 0.3), (0.05, 0.0), (float("nan"), 0.0), (float("inf"), 0.4), (1e300, 0.4)],
)
def test_a_report_that_waits_for_a_held_loop_is_placing(stall_s: float, place_s: float) -> None:
    """Stalls of less than 0.1 s come and go anywhere, and are left to the messages."""
    recording = held(stall_s)
    steps = recording.steps().set_index("step")["wall_s"]
    assert steps.get("place", 0.0) == pytest.approx(place_s)
    assert steps["compute"] == pytest.approx(0.1)
    assert steps.get("task.send", 0.0) == pytest.approx(0.4 - place_s)


def test_other_samples_say_nothing_of_it() -> None:
    """What a loop used of a processor is no stall."""
    assert "place" not in held(0.3, "loop.cpu_s").steps()["step"].tolist()
