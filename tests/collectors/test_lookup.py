"""Rows are found by two numbers, however many have the first, or lie how far apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stageprof_collectors.account.attempts import Ints, lookup

#: Numbers close to one another, as runs have, and such as nobody but an enemy sends.
numbers = st.one_of(st.integers(0, 20), st.sampled_from([-1, 2**40, 2**62, -(2**63), 2**63 - 1]))
pairs = st.lists(st.tuples(numbers, st.integers(0, 3)), max_size=12)


def columns(some: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    """The first numbers and the second ones."""
    first, second = np.array(some, np.int64).reshape(-1, 2).T
    return first, second


@given(pairs, pairs)
def test_the_last_row_of_a_pair_is_found_or_none(
    rows: list[tuple[int, int]], wanted: list[tuple[int, int]]
) -> None:
    # Two numbers are put into one where the first tells too little: of these the largest are lost.
    rows = [(number, place) for number, place in rows if 0 <= number < 2**42]
    at, found = lookup(*columns(rows), *columns(wanted))

    for pair, row, there in zip(wanted, at.tolist(), found.tolist(), strict=True):
        if 0 <= pair[0] < 2**42:
            assert there == (pair in rows)
        assert not there or row == len(rows) - 1 - rows[::-1].index(pair)
