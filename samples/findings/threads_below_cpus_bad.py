"""Finding: threads-below-cpus.

One worker with one thread, on a machine that has more CPUs than that: the size of the machine was
changed, the option was not.
"""

from __future__ import annotations

import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

SAMPLES = 8


@delayed
def largest(seed: int) -> float:
    """The largest of many numbers, the long way."""
    return float(np.sort(np.sin(np.arange(6_000_000) * (seed + 1.5)), kind="stable")[-1])


def main() -> None:
    """The sum of them."""
    print(f"{sum(compute(*[largest(seed) for seed in range(SAMPLES)])):.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
