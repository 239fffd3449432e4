"""Finding: python-bound, after the fix.

Adds up the numbers below a limit that their own digit sum divides, all at once in NumPy.
"""

from __future__ import annotations

import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

PARTS, NUMBERS = 16, 700_000


def divided(first: int) -> int:
    """The sum of the numbers of a range that their digit sum divides."""
    number = np.arange(first, first + NUMBERS)
    digits, rest = np.zeros(NUMBERS, "int64"), number
    while rest.any():
        digits += rest % 10
        rest = rest // 10
    return int(number[number % digits == 0].sum())


def main() -> None:
    """The sum over all ranges."""
    parts = [delayed(divided)(1 + part * NUMBERS) for part in range(PARTS)]
    print(delayed(sum)(parts).compute())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
