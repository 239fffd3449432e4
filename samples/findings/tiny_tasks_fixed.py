"""Finding: tiny-tasks, after the fix.

Checks numbers in batches: as many in a task as make its hand-out worth while.
"""

from __future__ import annotations

from dask import delayed
from distributed import Client, LocalCluster

NUMBERS, BATCH = 6_000, 1_000


def divisors(number: int) -> int:
    """How many small divisors a number has."""
    return sum(number % d == 0 for d in range(1, 60))


def divisors_of_batch(numbers: range) -> int:
    """How many small divisors the numbers have."""
    return sum(divisors(number) for number in numbers)


def main() -> None:
    """How many in all."""
    starts = range(1, NUMBERS + 1, BATCH)
    checked = [delayed(divisors_of_batch)(range(start, start + BATCH)) for start in starts]
    print(delayed(sum)(checked).compute())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
