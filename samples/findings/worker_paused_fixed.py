"""Finding: worker-paused, after the fix.

Looks for each well's nearest neighbour, field by field. The distances within one field take
half of a worker's memory for a moment.
"""

from __future__ import annotations

import dask
import numpy as np
from distributed import Client, LocalCluster

FIELDS, WELLS = 60, 6_500


def nearest(field: int) -> float:
    """How far the nearest well is, on average."""
    depth = np.random.default_rng(field).gamma(2.0, size=WELLS)
    distance = np.subtract.outer(depth, depth)
    np.abs(distance, out=distance)
    np.fill_diagonal(distance, np.inf)
    return float(distance.min(axis=1).mean())


def main() -> None:
    """The mean over all fields."""
    means = [dask.delayed(nearest)(field) for field in range(FIELDS)]
    print(f"{dask.delayed(sum)(means).compute() / FIELDS:.9f}")


if __name__ == "__main__":
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="800MB",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster),
    ):
        main()
