"""Finding: python-bound, after the fix.

Looks for the numbers below a limit whose Collatz sequence is longest, all numbers at once in NumPy.
"""

from __future__ import annotations

import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

PARTS, NUMBERS = 16, 15_000


def longest(first: int) -> tuple[int, int]:
    """Steps of the longest sequence that begins in a range of numbers, and where it begins."""
    number = np.arange(first, first + NUMBERS)
    steps = np.zeros(NUMBERS, "int64")
    while (going := number != 1).any():
        following = np.where(number % 2, 3 * number + 1, number // 2)
        number = np.where(going, following, 1)
        steps += going
    best = int(steps.argmax())
    return int(steps[best]), first + best


def main() -> None:
    """The longest of all."""
    parts = [delayed(longest)(1 + part * NUMBERS) for part in range(PARTS)]
    print(delayed(max)(parts).compute())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
