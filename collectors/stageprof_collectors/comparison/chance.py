"""Whether a difference was chance: trimmed t tests, combined and corrected; bootstrap interval.

Of SciPy, `ttest_ind(trim=)`, `combine_pvalues` and `bootstrap` come near; it is large, and nothing
else here needs it. It also cannot trim one end alone, nor ask all quantities at once. What is drawn
at random is seeded: the same recordings give the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Seconds: a row for each quantity, a column for each recording.
Table = NDArray[np.float64]

#: Shares of each side that are left out, the slowest: none, and what may have stood still.
SLOWEST: Final = (0.0, 0.3)
#: The same of pairs, at both ends: each of two recordings may have stood still.
FARTHEST: Final = (0.0, 0.2)
#: Clocks tell nothing finer, seconds.
TICK: Final = 1e-9
#: Times that recordings are drawn anew for an interval, and how much of them it covers.
RESAMPLED: Final = 2_000
COVERED: Final = 0.95
#: Ways to split one side in two, to learn how much it differs from itself.
SPLITS: Final = 400
_SEED: Final = 20_260_000


class Effect(NamedTuple):
    """How many times as long something takes: the ratio of medians, and where it may lie."""

    ratio: float
    low: float
    high: float


def p_values(
    base: Table, head: Table, families: Sequence[Sequence[int]], *, paired: bool = False
) -> dict[int, float]:
    """How often chance alone would part the sides as far as they are, or farther.

    A recording that stood still for a second must not hide what the others say. Nobody knows how
    many did, so each row is asked twice, by all recordings and without the slowest of each side,
    and both answers count (their harmonic mean: D. Wilson, The harmonic mean p-value for combining
    dependent tests, PNAS 116, 2019).

    Args:
        base: one side, two recordings or more.
        head: the other, with the same rows.
        families: rows that are looked at together, each a question of its own: it is asked whether
            *any* of one family changed, by the harmonic mean again, and over families Holm's
            correction is made.
        paired: whether column i of both sides was recorded one after the other; then what is
            tested are the differences.

    Returns:
        The p-value of each row of a family, for both directions; none is smaller than `rarest`.
    """
    asked = _paired(base, head) if paired else _unpaired(base, head)
    each = _harmonic(np.array([student(*t) for t in asked]))
    least = rarest(base.shape[1], head.shape[1], paired=paired)
    whole = [max(float(_harmonic(each[list(family)])), least) for family in families]
    p: dict[int, float] = {}
    for family, share, corrected in zip(families, whole, holm(whole), strict=True):
        within = np.maximum(_closed(each[list(family)]), share)
        p |= zip(family, np.minimum(1.0, within * corrected / share).tolist(), strict=True)
    return p


def rarest(base: int, head: int, *, paired: bool) -> float:
    """How often chance parts so many recordings completely, whatever the noise.

    Farther than that no tail of a distribution is believed.
    """
    return 2 / (2 ** min(base, head) if paired else comb(base + head, head))


class _Apart(NamedTuple):
    """How far the sides are apart: Student's t of each row, and its degrees of freedom."""

    t: NDArray[np.float64]
    free: int


def _unpaired(base: Table, head: Table) -> list[_Apart]:
    """Trimmed t tests.

    K. Yuen and W. Dixon, The approximate behaviour and performance of the two-sample trimmed t,
    Biometrika 60 (1973). What disturbs a recording makes it slower, so only that end is trimmed:
    H. Keselman, R. Wilcox, A. Othman and K. Fradette, Trimming, transforming statistics, and
    bootstrapping, J. Mod. Appl. Stat. Methods 1 (2002).
    """
    found = []
    fewer = min(base.shape[1], head.shape[1])
    for share in SLOWEST:
        alike = int(share * fewer) / fewer  # of both sides, or the one that lost more looks faster
        one, other = (_trimmed(side, 0, round(alike * side.shape[1])) for side in (base, head))
        free = one.left + other.left - 2
        variance = (one.squares + other.squares) / free * (1 / one.left + 1 / other.left)
        found.append(_apart_by(other.mean - one.mean, variance, free))
    return found


def _paired(base: Table, head: Table) -> list[_Apart]:
    """The same of differences.

    J. Tukey and D. McLaughlin, Less vulnerable confidence and significance procedures for location
    based on a single sample, Sankhya A 25 (1963).
    """
    found = []
    for share in FARTHEST:
        out = int(share * base.shape[1])
        middle = _trimmed(head - base, out, out)
        free = middle.left - 1
        found.append(_apart_by(middle.mean, middle.squares / free / middle.left, free))
    return found


class _Trimmed(NamedTuple):
    """What remains of each row without its ends."""

    mean: NDArray[np.float64]
    #: squares around their mean of all values, those of the ends drawn in to the next that remains
    squares: NDArray[np.float64]
    #: how many remain
    left: int


def _trimmed(values: Table, low: int, high: int) -> _Trimmed:
    ordered = np.sort(values, axis=1)
    middle = ordered[:, low : values.shape[1] - high]
    near = np.clip(ordered, middle[:, :1], middle[:, -1:])
    squares = ((near - near.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return _Trimmed(middle.mean(axis=1), squares, middle.shape[1])


def _apart_by(seconds: NDArray[np.float64], variance: NDArray[np.float64], free: int) -> _Apart:
    return _Apart(np.abs(seconds) / np.maximum(np.sqrt(variance), TICK), free)


def _harmonic(p: NDArray[np.float64]) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = 1 / np.mean(1 / p, axis=0)
    return mean


def _closed(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each, that it is chance: the largest p-value of any set of them that it is in.

    Of all sets of one size, that with the largest others: R. Marcus, E. Peritz and K. Gabriel, On
    closed testing procedures, Biometrika 63 (1976).
    """
    found = np.empty_like(p)
    for i in range(len(p)):
        others = np.sort(np.delete(1 / p, i))
        sums = np.cumsum([1 / p[i], *others])
        found[i] = (np.arange(1, len(p) + 1) / sums).max()
    return found


def student(t: NDArray[np.float64], free: int) -> NDArray[np.float64]:
    """How often Student's t is as far from 0: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    odd = free % 2
    angle = np.arctan(t / sqrt(free))
    cosine = np.cos(angle)
    term = cosine if odd else np.ones_like(cosine)
    within = np.zeros_like(cosine)
    for i in range(odd + 1, free, 2):
        within += term
        term = term * cosine**2 * i / (i + 1)
    within *= np.sin(angle)
    if odd:
        within = (within + angle) * 2 / np.pi
    beyond: NDArray[np.float64] = np.maximum(1 - within, np.finfo(float).eps)
    return beyond


def holm(p: Sequence[float]) -> list[float]:
    """The same for all that was tested together: the chance that any of it is a false alarm.

    S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979).
    """
    adjusted, least = [0.0] * len(p), 0.0
    for rank, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        least = max(least, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = least
    return adjusted


def effects(base: Table, head: Table, *, paired: bool = False) -> list[Effect]:
    """The ratio of medians of each quantity, with its bootstrap interval."""
    random = np.random.default_rng(_SEED)
    n, m = base.shape[1], head.shape[1]
    of_base = random.integers(0, n, (RESAMPLED, n))
    of_head = of_base if paired else random.integers(0, m, (RESAMPLED, m))
    tail = 50 * (1 - COVERED)
    found = []
    for before, after in zip(base, head, strict=True):
        drawn = _ratio(np.median(before[of_base], axis=1), np.median(after[of_head], axis=1))
        low, high = np.percentile(drawn, [tail, 100 - tail], method="nearest")
        ratio = _ratio(np.median(before), np.median(after))
        found.append(Effect(float(ratio), float(low), float(high)))
    return found


def _ratio(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """What was nothing and is nothing is the same; what was nothing and is something, infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: NDArray[np.float64] = np.divide(after, before)
    return np.where((np.asarray(before) <= 0) & (np.asarray(after) <= 0), 1.0, ratio)


def floors(base: Table, head: Table) -> list[float]:
    """By what share of itself each quantity differs where nothing was changed.

    Each side is split in two halves, many times; the floor is the usual distance of the medians of
    halves, in the middle of both sides, and less by what whole sides vary less than halves do.
    """
    pairs = zip(base, head, strict=True)
    return [(_apart(before) + _apart(after)) / 2 / sqrt(2) for before, after in pairs]


def paired_floors(base: Table, head: Table) -> list[float]:
    """The same of recordings in turn: by what the ratios of pairs differ, not what the days do.

    There is one side of ratios, which is compared with no change at all.
    """
    pairs = (_ratio(before, after) for before, after in zip(base, head, strict=True))
    return [_apart(ratios[np.isfinite(ratios)]) / 2 for ratios in pairs]


def _apart(values: NDArray[np.float64]) -> float:
    """The usual difference of the medians of two halves, as a share."""
    n = len(values)
    if n < 2 or np.median(values) <= 0:
        return 0.0
    shuffled = values[np.argsort(np.random.default_rng(_SEED).random((SPLITS, n)), axis=1)]
    one, other = np.median(shuffled[:, : n // 2], axis=1), np.median(shuffled[:, n // 2 :], axis=1)
    return float(np.median(np.abs(one - other)) / np.median(values))
