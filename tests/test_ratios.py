"""What benchmarks of several tools say: medians of ratios, and how far they can be trusted."""

from __future__ import annotations

import random

import pytest

from benchmarks import ratios
from benchmarks.ratios import BARE, Round, Rounds, Run


def round_of(bare: float, *, stageprof: float, other: float) -> Round:
    """A round in which a bare run takes so long, and tools so many times as long."""
    runs = [Run(BARE, bare, 2 * bare)]
    for tool, ratio in (("stageprof", stageprof), ("other", other)):
        runs += [Run(tool, ratio * bare, 2 * ratio * bare, own_s=0.02 * bare)]
        runs += [Run(BARE, bare, 2 * bare)]
    return runs


def clusters(shifts: list[float], rounds: int, seed: int = 0) -> list[Rounds]:
    """Clusters that each cost so much more, and rounds that scatter around that a little."""
    rng = random.Random(seed)
    return [
        [
            round_of(10, stageprof=1 + shift + rng.uniform(-0.001, 0.001), other=1.0)
            for _ in range(rounds)
        ]
        for shift in shifts
    ]


def test_a_ratio_is_to_the_bare_runs_beside_it() -> None:
    drifting = [
        [Run(BARE, 10, 20), Run("stageprof", 11 * 1.02, 22 * 1.03), Run(BARE, 12, 24)],
        [Run(BARE, 20, 40), Run("stageprof", 21 * 1.02, 42 * 1.03), Run(BARE, 22, 44)],
    ]
    assert ratios.wall([drifting], "stageprof").median == pytest.approx(1.02)
    assert ratios.cpu([drifting], "stageprof").median == pytest.approx(1.03)
    assert ratios.count([drifting], "stageprof") == 2
    assert ratios.bare_s([drifting]) == 16


def test_each_tool_has_its_own_and_of_a_tool_that_did_not_run_there_is_none() -> None:
    both = [[round_of(10, stageprof=1.5, other=1.1)]]
    assert ratios.tools(both) == ["stageprof", "other"]
    assert ratios.wall(both, "other").median == pytest.approx(1.1)
    without = [*both, [[Run(BARE, 10, 20), Run("other", 12, 24), Run(BARE, 10, 20)]]]
    assert ratios.count(without, "stageprof") == 1
    assert ratios.wall(without, "stageprof").median == pytest.approx(1.5)
    assert ratios.count(without, "nobody") == 0


def test_clusters_that_differ_make_the_interval_wide_however_many_rounds_there_are() -> None:
    alike = ratios.wall(clusters([0.03] * 4, rounds=10), "stageprof")
    apart = ratios.wall(clusters([0.0, 0.02, 0.04, 0.06], rounds=10), "stageprof")
    assert alike.high - alike.low < 0.002
    assert apart.high - apart.low > 0.03
    assert apart.low <= 1.03 <= apart.high


def test_what_was_its_own_is_a_part_of_the_other_processor_time() -> None:
    assert ratios.own([[round_of(10, stageprof=1.0, other=1.0)]], "stageprof") == "1.0"
    assert ratios.own([[round_of(10, stageprof=1.0, other=1.0)]], "nobody") == ""


def test_a_ratio_is_printed_as_two_cells_of_a_table() -> None:
    assert str(ratios.Ratio(1.0234, 1.001, 1.05)) == "1.023 | 1.001 to 1.050"
