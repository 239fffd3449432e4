"""The rows of a table by a small number that each has, such as that of its place, or by two.

One sort, where a thousand places would otherwise each be looked for among all rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Rows:
    """Rows by number, each number's in order; -1 and what is below it is nobody's.

    Args:
        numbers: of each row.
    """

    def __init__(self, numbers: Ints) -> None:
        known = numbers + 1
        np.maximum(known, 0, out=known)
        most = int(known.max(initial=0))
        small = known.astype(np.uint16) if most < 1 << 16 else known  # which sorts by radix
        self._order: Ints = np.argsort(small, kind="stable")
        self._ends = np.cumsum(np.bincount(known, minlength=1))

    def of(self, number: int) -> Ints:
        """The rows that have a number."""
        if not 0 <= number < len(self._ends) - 1:
            return self._order[:0]
        return self._order[self._ends[number] : self._ends[number + 1]]

    @property
    def numbers(self) -> list[int]:
        """Those that any row has."""
        found: list[int] = np.flatnonzero(np.diff(self._ends)).tolist()
        return found


def by_thread(process: Ints, thread: Ints) -> dict[tuple[int, int], Ints]:
    """Rows by process (or place) and thread, each thread's in order; threads are large numbers."""
    order = np.lexsort((thread, process))
    whose = np.stack([process[order], thread[order]])
    cuts = np.flatnonzero((whose[:, 1:] != whose[:, :-1]).any(axis=0)) + 1
    parts = np.split(order, cuts) if len(order) else []
    return {(int(process[rows[0]]), int(thread[rows[0]])): rows for rows in parts}
