"""Finding: python-bound.

Adds up the numbers below a limit that their own digit sum divides, digit by digit in Python.
"""

from __future__ import annotations

from dask import delayed
from distributed import Client, LocalCluster

PARTS, NUMBERS = 16, 700_000


def divided(first: int) -> int:
    """The sum of the numbers of a range that their digit sum divides."""
    total = 0
    for number in range(first, first + NUMBERS):
        digits, rest = 0, number
        while rest:
            digits += rest % 10
            rest //= 10
        if number % digits == 0:
            total += number
    return total


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
