"""Whether a difference was chance: permutation test, Holm's correction, bootstrap interval.

Of SciPy, `permutation_test` and `bootstrap` do this for one quantity at a time; it is large, and
nothing else here needs it. With numpy all quantities are permuted at once. Everything is seeded:
the same recordings give the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, product
from math import comb, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Seconds: a row for each quantity, a column for each recording.
Table = NDArray[np.float64]

#: Up to so many arrangements each is looked at; of more, so many at random.
EXACT: Final = 20_000
DRAWN: Final = 9_999
#: Arrangements that are looked at together.
BLOCK: Final = 1_000
#: Times that recordings are drawn anew for an interval, and how much of them it covers.
RESAMPLED: Final = 2_000
COVERED: Final = 0.95
#: Ways to split one side in two, to learn how much it differs from itself.
SPLITS: Final = 400
#: So many times the usual distance from the middle is far.
FAR: Final = 1.5
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

    What is compared is the mean, after values far from all others were drawn in (`_clipped`): one
    recording that stood still for a second must not hide what the others say.

    Args:
        base: one side.
        head: the other, with the same rows.
        families: rows that are looked at together, each a question of its own: of those of one
            family it is asked how often *any* would be as far apart (P. Westfall and S. Young,
            Resampling-Based Multiple Testing, 1993), and over families Holm's correction is made.
        paired: whether column i of both sides was recorded one after the other; then it is seen
            how often the signs of the differences would fall like this.

    Returns:
        The p-value of each row of a family, for both directions.
    """
    values, arrangements = _paired(base, head) if paired else _unpaired(base, head)
    seen = np.abs(arrangements.seen @ values.T)
    blocks = np.array_split(arrangements.all, 1 + len(arrangements.all) // BLOCK)
    found = np.concatenate([np.abs(block @ values.T) for block in blocks])
    shares = []
    for family in families:
        largest = found[:, family].max(axis=1)
        far = [int((largest >= seen[row] * (1 - 1e-5)).sum()) for row in family]
        shares.append([_share(each, len(found), exact=arrangements.exact) for each in far])
    adjusted = holm([min(share) for share in shares])
    p: dict[int, float] = {}
    for family, share, least in zip(families, shares, adjusted, strict=True):
        times = least / min(share)
        p |= {row: min(1.0, times * each) for row, each in zip(family, share, strict=True)}
    return p


class _Arrangements(NamedTuple):
    """Weights of recordings: as they are, and as they might be; a row for each arrangement."""

    seen: Table
    all: NDArray[np.int8]
    exact: bool


def _share(far: int, of: int, *, exact: bool) -> float:
    """The arrangement that is seen is one of all, but need not be among those drawn."""
    return far / of if exact else (far + 1) / (of + 1)


def _unpaired(base: Table, head: Table) -> tuple[Table, _Arrangements]:
    """Every way to say which recordings are the candidate's."""
    values = _clipped(np.concatenate([base, head], axis=1))
    n, k = values.shape[1], head.shape[1]
    seen = np.zeros(n)
    seen[base.shape[1] :] = 1.0
    return values, _Arrangements(seen, _choices(n, k), comb(n, k) <= EXACT)


@lru_cache(maxsize=4)
def _choices(n: int, k: int) -> NDArray[np.int8]:
    """Every way to choose k of n, or very many at random: 1 where one is chosen."""
    random = np.random.default_rng(_SEED)
    drawn = (random.choice(n, k, replace=False) for _ in range(DRAWN))
    ways = list(combinations(range(n), k) if comb(n, k) <= EXACT else drawn)
    chosen = np.zeros((len(ways), n), np.int8)
    for row, way in zip(chosen, ways, strict=True):
        row[list(way)] = 1
    return chosen


def _paired(base: Table, head: Table) -> tuple[Table, _Arrangements]:
    """Every way to say which recording of each pair is the candidate's."""
    values = _clipped(np.concatenate([head - base, base - head], axis=1))[:, : head.shape[1]]
    n = values.shape[1]
    exact = 2**n <= EXACT
    if exact:
        signs = np.array(list(product((-1, 1), repeat=n)), np.int8)
    else:
        signs = np.random.default_rng(_SEED).choice(np.array([-1, 1], np.int8), (DRAWN, n))
    return values, _Arrangements(np.ones(n), signs, exact)


def _clipped(values: Table) -> Table:
    """Around their mean, in units of their spread; what is farther off than `FAR` is drawn in.

    Made of both sides together, so that it is the same for every arrangement.
    """
    middle = np.median(values, axis=1, keepdims=True)
    spread = np.median(np.abs(values - middle), axis=1, keepdims=True) * 1.4826
    near = np.where(
        spread > 0, np.clip(values, middle - FAR * spread, middle + FAR * spread), values
    )
    near -= near.mean(axis=1, keepdims=True)
    unit = near.std(axis=1, keepdims=True)
    clipped: Table = np.divide(near, unit, out=np.zeros_like(near), where=unit > 0)
    return clipped


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


def _apart(values: NDArray[np.float64]) -> float:
    """The usual difference of the medians of two halves, as a share."""
    n = len(values)
    if n < 2 or np.median(values) <= 0:
        return 0.0
    shuffled = values[np.argsort(np.random.default_rng(_SEED).random((SPLITS, n)), axis=1)]
    one, other = np.median(shuffled[:, : n // 2], axis=1), np.median(shuffled[:, n // 2 :], axis=1)
    return float(np.median(np.abs(one - other)) / np.median(values))
