"""Finding: late-workers, after the fix.

Asks for four workers and waits until they are there.
"""

from __future__ import annotations

import time

import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

TASKS = 40


@delayed
def answered(number: int) -> float:
    """What a slow service says of a number."""
    time.sleep(0.15)
    return float(np.sqrt(number))


def main() -> None:
    """The sum of all answers."""
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        cluster.scale(4)
        client.wait_for_workers(4)
        print(f"{sum(compute(*[answered(number) for number in range(TASKS)])):.6f}")


if __name__ == "__main__":
    main()
