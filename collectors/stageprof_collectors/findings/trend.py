"""Whether numbers grow from one repetition to the next, beyond noise.

Kendall's test for a trend (Mann 1945, Kendall 1975) asks nothing of the numbers but their order,
and Theil's slope (Theil 1950, Sen 1968) is not moved by outliers: both suit few, rough numbers.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: With fewer numbers even a perfect trend is no proof.
LEAST: Final = 6


class Trend(NamedTuple):
    """What numbers do from one to the next."""

    #: by how much they change each time
    slope: float
    #: the same in their second half: what levels off has little left there
    late: float
    #: how probable it is that numbers without a trend grow like this
    chance: float


NONE: Final = Trend(0.0, 0.0, 1.0)


def trend(values: Floats, at: Ints | None = None) -> Trend:
    """The trend of numbers in the order in which they came; none if they are too few.

    Args:
        values: the numbers.
        at: their places in that order, where some are missing; None: one after another.
    """
    n = len(values)
    if n < LEAST:
        return NONE
    at = np.arange(n) if at is None else at
    half = n // 2
    return Trend(slope(values, at), slope(values[half:], at[half:]), _chance(values))


def slope(values: Floats, at: Ints) -> float:
    """The median of the slopes between all pairs; 0 for fewer than two numbers."""
    rows, columns = np.triu_indices(len(values), k=1)
    if not len(rows):
        return 0.0
    return float(np.median((values[columns] - values[rows]) / (at[columns] - at[rows])))


def _chance(values: Floats) -> float:
    """One-sided, by the normal approximation with ties taken into account."""
    n = len(values)
    rows, columns = np.triu_indices(n, k=1)
    score = float(np.sign(values[columns] - values[rows]).sum())
    ties = np.unique(values, return_counts=True)[1].astype(float)
    spread = n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())
    if score <= 0 or spread <= 0:
        return 1.0
    z = (score - 1) / math.sqrt(spread / 18)
    return 0.5 * math.erfc(z / math.sqrt(2))
