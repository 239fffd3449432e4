"""Fetching results is for the layers whose results were wanted until then, by their bytes."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stageprof_collectors.account.tally import Tally, Wanted

sizes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1000)), min_size=1, max_size=20)
pieces = st.lists(st.tuples(st.integers(0, 19), st.integers(1, 20), st.integers(1, 10**9)))


@given(sizes, pieces)
def test_all_at_once_is_one_by_one(
    results: list[tuple[int, int]], pieces: list[tuple[int, int, int]]
) -> None:
    """A program that fetches one by one has as many pieces of time as results."""
    rows = np.array([row for row, _ in results])
    nbytes = np.array([size + 1.0 for _, size in results])
    until = np.concatenate([[0.0], np.cumsum(nbytes)])
    tally, expected = Tally(), defaultdict[int, float](float)
    for first, length, ns in pieces:
        last = min(first + length, len(rows))
        if first >= last:
            continue
        tally.results[first, last] += ns
        for i in range(first, last):
            expected[int(rows[i])] += ns * nbytes[i] / nbytes[first:last].sum()

    if tally.results:
        Wanted(np.arange(len(rows)), rows, until).share(tally)

    for row in range(4):
        assert tally.rows[row] == pytest.approx(expected[row], rel=1e-6, abs=1e-3)
