"""Seconds of each line of the account between two instants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
