"""Trends: a leak is told from noise, from a step, and from what levels off."""

from __future__ import annotations

import numpy as np
import pytest

from stageprof_collectors.findings.trend import LEAST, NONE, Floats, slope, trend

NOISE = np.random.default_rng(1).normal(0, 3, 24)


def grows(values: Floats) -> bool:
    found = trend(values)
    return found.chance <= 0.01 and found.late >= 0.5 * found.slope > 0


@pytest.mark.parametrize("n", [6, 8, 12, 24])
def test_steady_growth_is_a_trend_with_its_slope(n: int) -> None:
    """C5: the second run has less memory than the first, the third than the second."""
    values = 300 + 20.0 * np.arange(n) + NOISE[:n]
    assert grows(values)
    assert trend(values).slope == pytest.approx(20, rel=0.1)


def test_noise_is_none() -> None:
    runs = np.random.default_rng(2).normal(300, 10, (400, 12))
    assert sum(grows(values) for values in runs) <= 8  # one in a hundred, with some luck


@pytest.mark.parametrize(
    "values",
    [
        np.concatenate([[150.0], np.full(11, 400.0)]) + NOISE[:12],
        400 - 250 * np.exp(-np.arange(16) / 3.0) + NOISE[:16] / 10,
        np.minimum(150 + 60.0 * np.arange(16), 400) + NOISE[:16] / 10,
        np.full(12, 300.0),
        500 - 20.0 * np.arange(12),
    ],
    ids=["step", "levels off", "plateau", "constant", "falls"],
)
def test_what_levels_off_is_no_leak(values: Floats) -> None:
    """C4: what an allocator keeps for later is not lost."""
    assert not grows(values)


def test_one_outlier_changes_little() -> None:
    values = np.array(300 + 20.0 * np.arange(12), np.float64)
    values[5] += 500
    assert trend(values).slope == pytest.approx(20, rel=0.15)
    assert grows(values)


def test_too_few_numbers_are_no_trend() -> None:
    assert trend(np.arange(LEAST - 1, dtype=float)) == NONE
    assert slope(np.zeros(1), np.arange(1)) == 0
    assert slope(np.zeros(0), np.arange(0)) == 0


def test_missing_numbers_do_not_steepen_a_trend() -> None:
    at = np.array([0, 1, 4, 5, 9, 12, 13])
    assert trend(20.0 * at, at).slope == pytest.approx(20)


def test_the_chance_is_that_of_kendalls_test() -> None:
    """Ten numbers in order: a tau of 1, by the normal approximation p = 0.00004."""
    assert trend(np.arange(10.0)).chance == pytest.approx(4.15e-5, rel=0.01)
