"""Finding: long-chain.

Lets values settle in 100 steps, each a task of its own that needs nothing but the one before.
"""

from __future__ import annotations

from dask import compute, delayed
from dask.delayed import Delayed
from distributed import Client, LocalCluster

SERIES, STEPS = 40, 100


@delayed
def started(seed: int) -> float:
    """Where a series begins."""
    return (seed * 37 % 11) / 11


@delayed
def stepped(value: float) -> float:
    """A step of the logistic map."""
    return 3.6 * value * (1 - value)


def main() -> None:
    """The sum of where all series end."""
    ends: list[Delayed] = []
    for seed in range(SERIES):
        value = started(seed)
        for _ in range(STEPS):
            value = stepped(value)
        ends.append(value)
    print(f"{sum(compute(*ends)):.9f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
