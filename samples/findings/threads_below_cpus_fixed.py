"""Finding: threads-below-cpus, after the fix.

One worker with a thread for each CPU.
"""

from __future__ import annotations

import os

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
        LocalCluster(
            n_workers=1, threads_per_worker=os.cpu_count(), dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        main()
