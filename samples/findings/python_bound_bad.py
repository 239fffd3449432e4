"""Finding: python-bound.

Looks for the numbers below a limit whose Collatz sequence is longest, step by step in Python.
"""

from __future__ import annotations

from dask import delayed
from distributed import Client, LocalCluster

PARTS, NUMBERS = 16, 15_000


def longest(first: int) -> tuple[int, int]:
    """Steps of the longest sequence that begins in a range of numbers, and where it begins."""
    most, best = 0, 0
    for start in range(first, first + NUMBERS):
        number, steps = start, 0
        while number != 1:
            if number % 2:
                number = 3 * number + 1
            else:
                number //= 2
            steps += 1
        if steps > most:
            most, best = steps, start
    return most, best


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
