"""A benchmark that pytest runs: what it computes must be right, and where its time goes, too."""

from __future__ import annotations

import os

import pytest
from dask.base import compute
from dask.delayed import delayed

ORDERS = 40_000
PIECES = 8
#: One, where a job records both sides in turn.
REPEAT = int(os.environ.get("REPEAT", "7"))


def priced(first: int, last: int) -> list[int]:
    """The prices of some orders."""
    return [number * 7 % 100 for number in range(first, last)]


def total(prices: list[int]) -> int:
    """What they come to."""
    return sum(prices)


def revenue() -> int:
    """What all orders come to."""
    step = ORDERS // PIECES
    pieces = [delayed(priced)(first, first + step) for first in range(0, ORDERS, step)]
    totals = compute(*[delayed(total)(piece) for piece in pieces], scheduler="threads")
    return sum(totals)


@pytest.mark.stageprof(repeat=REPEAT, max_wall="30s", max_stage={"serialization": "50%"})
def test_revenue() -> None:
    """Seven recordings show a change of a tenth in what varies little."""
    assert revenue() == 1_980_000
