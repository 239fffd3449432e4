"""Rows of a trace: which slices may share one.

A viewer takes the slices of a row as a stack of calls: two of them must not overlap unless one
lies in the other. What coroutines do on one thread overlaps all the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def nested(slices: Iterable[tuple[int, int, T]]) -> Iterator[tuple[int, int, int, T]]:
    """(row, start, stop, what) of slices, each in the lowest row where it fits, by start."""
    rows: list[list[int]] = []
    for start, stop, what in sorted(slices, key=lambda s: (s[0], -s[1])):
        free = (n for n, open_until in enumerate(rows) if _fits(open_until, start, stop))
        row = next(free, len(rows))
        if row == len(rows):
            rows.append([])
        rows[row].append(stop)
        yield row, start, stop, what


def _fits(open_until: list[int], start: int, stop: int) -> bool:
    """Whether a slice lies after or within those open in a row; closes those that ended."""
    while open_until and open_until[-1] <= start:
        open_until.pop()
    return not open_until or stop <= open_until[-1]
