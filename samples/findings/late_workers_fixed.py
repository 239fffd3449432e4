"""Finding: late-workers, after the fix.

Asks for both workers when the cluster starts, and begins when both are there.
"""

from __future__ import annotations

import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

TASKS = 40
#: what each worker imports before it takes tasks
MODULES = ["dask.dataframe"]


@delayed
def largest(seed: int) -> float:
    """The largest of some random numbers, the long way."""
    random = np.random.default_rng(seed)
    return round(float(np.sort(random.random(1_500_000), kind="stable")[-1]), 9)


def main() -> None:
    """The sum over all seeds."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, preload=MODULES, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        print(f"{sum(compute(*[largest(seed) for seed in range(TASKS)])):.6f}")


if __name__ == "__main__":
    main()
