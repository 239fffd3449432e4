"""Finding: tiny-tasks.

Checks numbers one by one: each task takes microseconds, and Dask needs much longer to hand it out.
"""

from __future__ import annotations

from dask import delayed
from distributed import Client, LocalCluster

NUMBERS = 6_000


def divisors(number: int) -> int:
    """How many small divisors a number has."""
    return sum(number % d == 0 for d in range(1, 60))


def main() -> None:
    """How many in all."""
    checked = [delayed(divisors)(number) for number in range(1, NUMBERS + 1)]
    print(delayed(sum)(checked).compute())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
