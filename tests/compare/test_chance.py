"""The statistics: against what can be counted by hand, printed tables and known noise."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from stageprof_collectors.comparison import chance


def rows(*values: list[float]) -> chance.Table:
    return np.array(values, float)


def test_sides_that_part_completely_are_as_rare_as_counting_says() -> None:
    """Of all ways to choose 4 of 8 two part them: this one and its opposite, however far."""
    p = chance.p_values(rows([1, 2, 3, 4]), rows([5, 6, 7, 8]), [[0]])

    assert p == {0: 2 / comb(8, 4)}


def test_sides_that_are_alike_are_no_rarity() -> None:
    p = chance.p_values(rows([1, 4, 5, 8]), rows([2, 3, 6, 7]), [[0]])

    assert p[0] > 0.9


def test_what_never_varies_is_the_same_or_as_rare_as_counting_says() -> None:
    """Means of equal numbers differ by their rounding; that is no change."""
    base, head = np.full((2, 7), 0.1), np.full((2, 9), 0.1)
    head[1] = 0.3

    p = chance.p_values(base, head, [[0], [1]])

    assert p == pytest.approx({0: 1.0, 1: 2 * 2 / comb(16, 7)})


@pytest.mark.parametrize(
    ("free", "t", "p"),
    [(1, 6.314, 0.1), (2, 9.925, 0.01), (5, 4.032, 0.01), (12, 3.055, 0.01), (30, 2.042, 0.05)],
)
def test_student_says_what_tables_say(free: int, t: float, p: float) -> None:
    assert chance.student(np.array([t, 0.0]), free) == pytest.approx([p, 1.0], rel=2e-3)


def test_a_recording_that_stood_still_counts_no_more_than_one_that_was_slow() -> None:
    """The candidate is slower in all of eight, and in one of the baseline the machine slept."""
    base, head = [0.01 * i for i in range(8)], [0.2 + 0.01 * i for i in range(8)]
    slept, slow = ([*base[:7], value] for value in (30.0, 0.3))
    p, other = (chance.p_values(rows(each), rows(head), [[0]])[0] for each in (slept, slow))

    assert max(p, other) < 0.05


def test_pairs_are_compared_with_each_other() -> None:
    """What varies from pair to pair, but alike on both sides, hides nothing; signs of 6 are 64."""
    base = [1.0, 5.0, 2.0, 9.0, 3.0, 7.0]
    head = [value + 0.1 for value in base]
    unpaired = chance.p_values(rows(base), rows(head), [[0]])[0]

    assert chance.p_values(rows(base), rows(head), [[0]], paired=True)[0] == 2 / 64
    assert unpaired > 0.5


def test_rows_of_a_family_share_the_chance_of_a_false_alarm() -> None:
    """With many rows beside it, a row that is apart is less of a surprise."""
    random = np.random.default_rng(3)
    base, head = random.normal(1, 0.1, (21, 6)), random.normal(1, 0.1, (21, 6))
    base[0], head[0] = np.arange(6), np.arange(6) + 4
    alone = chance.p_values(base[:1], head[:1], [[0]])[0]
    among = chance.p_values(base, head, [list(range(21))])[0]

    assert alone < among < 21 * alone


def test_holm_multiplies_the_smallest_by_all_and_keeps_the_order() -> None:
    """The example of every textbook."""
    assert chance.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_the_effect_is_the_ratio_of_medians_within_its_interval() -> None:
    random = np.random.default_rng(1)
    base, head = random.normal(10, 0.1, (1, 9)), random.normal(12, 0.1, (1, 9))
    (effect,) = chance.effects(base, head)

    assert effect.ratio == np.median(head) / np.median(base)
    assert effect.low < 1.2 < effect.high
    assert effect.high - effect.low < 0.05


def test_what_was_nothing_is_new_or_the_same() -> None:
    nothing, new = chance.effects(rows([0, 0, 0], [0, 0, 0]), rows([0, 0, 0], [1, 1, 1]))

    assert nothing == (1.0, 1.0, 1.0)
    assert new == (np.inf, np.inf, np.inf)


def test_the_floor_is_learned_from_a_side_against_itself() -> None:
    """It grows with the noise, and knows nothing of the difference between the sides."""
    random = np.random.default_rng(2)
    noise = random.normal(0, 1, (1, 8))
    quiet, loud = (chance.floors(10 + s * noise, 20 + s * noise)[0] for s in (0.1, 1.0))

    assert quiet < 0.02
    assert loud == pytest.approx(10 * quiet, rel=0.1)


def test_the_same_recordings_give_the_same_answer() -> None:
    random = np.random.default_rng(5)
    base, head = random.normal(1, 0.1, (3, 20)), random.normal(1.02, 0.1, (3, 20))
    answers = [
        (chance.p_values(base, head, [[0], [1, 2]]), chance.effects(base, head)) for _ in range(2)
    ]

    assert answers[0] == answers[1]


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("still", [0.0, 0.1], ids=lambda share: f"{share:.0%} stood still")
def test_false_alarms_are_as_rare_as_is_said(still: float, *, paired: bool) -> None:
    """Of 1000 comparisons of the same noise few call anything slower at 2 % for both directions.

    If each did with a chance of 1 %, more than 21 would come of it once in a thousand times.
    """
    random = np.random.default_rng(11)
    side = 10 if paired else 7
    alarms = 0
    for _ in range(1000):
        table = recorded(random, 2 * side, still)
        base, head = table[:, :side], table[:, side:]
        p = chance.p_values(base, head, FAMILIES, paired=paired)
        slower = np.median(head, axis=1) > np.median(base, axis=1)
        alarms += any(p[row] <= 0.02 and slower[row] for row in p)

    assert alarms <= 21


#: The whole, and six stages, half of which have parts.
FAMILIES = [[0], [1, 7, 8], [2, 9, 10], [3, 11, 12], [4], [5], [6]]


def recorded(random: np.random.Generator, number: int, still: float) -> chance.Table:
    """Columns of recordings: parts vary by themselves, with their stage and with the recording.

    In each stage of a share of the recordings, `still`, something took up to twice the time.
    """
    mood, stage = random.normal(0, 0.01, number), random.normal(0, 0.03, (6, number))
    parts = 1 + mood + stage[[0, 0, 1, 1, 2, 2]] + random.normal(0, 0.03, (6, number))
    stages = 2 + 2 * mood + stage
    stages[:3] = parts.reshape(3, 2, number).sum(axis=1)
    stood = (random.random((6, number)) < still) * random.uniform(0.2, 2, (6, number))
    parts[::2] += stood[:3]
    stages += stood
    return np.vstack([stages.sum(axis=0), stages, parts])
