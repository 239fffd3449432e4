"""Seconds of each line of the account between two instants."""

from __future__ import annotations

import cProfile
import pstats

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.handmade import HandMade
from stageprof_collectors.account.lane import What
from stageprof_collectors.account.path import Step
from stageprof_collectors.account.walls import Walls
from stageprof_runtime.stage import OUTSIDE, STEP, Stage, stage_of

CODES = [STEP["build"], STEP["compute"], STEP["graph.send"], OUTSIDE]
#: A gap, a length and a code of each step in turn.
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.sampled_from(CODES)))


def steps_of(drawn: list[tuple[int, int, int]]) -> list[Step]:
    now, steps = 0, []
    for gap, length, code in drawn:
        steps.append(Step(now + gap, now + gap + length, What(code, 0), -1))
        now += gap + length
    return steps


@given(STEPS, st.integers(-5, 150), st.integers(-5, 150))
def test_a_window_has_of_each_step_what_lies_within_it(
    drawn: list[tuple[int, int, int]], begin: int, stop: int
) -> None:
    steps = steps_of(drawn)
    expected = {f"{stage}_s": 0.0 for stage in Stage}
    for step in steps:
        within = min(step.stop, stop) - max(step.start, begin)
        expected[f"{stage_of(step.what.step)}_s"] += max(0, within) / 1e9
    assert Walls(steps).between(begin, stop) == pytest.approx(expected)


def calls_for(graphs: int) -> int:
    """Function calls that the table of so many computations takes, and the first task's line."""
    made, now = HandMade(1), 0.0
    for _ in range(graphs):
        graph = made.graph(now, now + 1, now + 2)
        run = made.run(0, now + 3, now + 4, cause=-1 - graph, wanted=True)
        made.wait(now, now + 5, run, now + 4.5)
        now += 6
    recording = made.recording(now)
    assert recording.stages()["wall_s"]["outside"] > 0  # what others need as well is made by now
    with cProfile.Profile() as profile:
        assert len(recording.computations()) == graphs
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_a_computation_among_many_takes_no_longer() -> None:
    assert calls_for(800) < 5 * calls_for(200)
