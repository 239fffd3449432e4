"""Columns in a form that compresses well; nothing is lost but digits that nobody reads.

A page with a million tasks is as large as its columns. What grows from task to task is sent as
steps, and durations that are only told (not drawn) with three digits.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: Of a rough number: parts of a doubling, so that neighbours differ by 0.35 %.
ROUGH: Final = 200


def steps(column: NDArray[Any]) -> NDArray[np.uint32]:
    """Of whole numbers of 32 bits the differences of neighbours, wrapped; the first as it is."""
    whole = column.astype(np.uint32)
    return np.diff(whole, prepend=np.uint32(0)).astype(np.uint32)


def rough(column: NDArray[Any]) -> NDArray[np.uint16]:
    """Of numbers of 32 bits the logarithm, rounded: exact for 0, within 0.2 % else."""
    return np.round(ROUGH * np.log2(1.0 + column.astype(np.float64))).astype(np.uint16)
