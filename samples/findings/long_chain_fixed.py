"""Finding: long-chain, after the fix.

Lets values settle in 100 steps inside one task for each series.
"""

from __future__ import annotations

from dask import compute, delayed
from distributed import Client, LocalCluster

SERIES, STEPS = 40, 100


def started(seed: int) -> float:
    """Where a series begins."""
    return (seed * 37 % 11) / 11


def stepped(value: float) -> float:
    """A step of the logistic map."""
    return 3.6 * value * (1 - value)


@delayed
def settled(seed: int) -> float:
    """Where a series ends."""
    value = started(seed)
    for _ in range(STEPS):
        value = stepped(value)
    return value


def main() -> None:
    """The sum of where all series end."""
    ends = [settled(seed) for seed in range(SERIES)]
    print(f"{sum(compute(*ends)):.9f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
