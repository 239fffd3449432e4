"""Finding: memory-near-limit, after the fix.

Keeps readings in memory and looks for the most unusual ones, on three scales. The workers
have room for what is kept and for what the search takes for a moment.
"""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

STATIONS, HOURS = 4_000, 8_760


def highest(block: np.ndarray) -> np.ndarray:
    """How far each row's readings go beyond the row's mean, at most."""
    distance = np.abs(block - block.mean(axis=1, keepdims=True))
    return np.where(distance > 1, distance, 0).max(axis=1)


def main() -> None:
    """How unusual the stations' most unusual readings are, on average."""
    readings = da.random.default_rng(3).normal(size=(STATIONS, HOURS), chunks=(400, HOURS))
    readings = readings.persist()
    wait(readings)
    for power in (1, 2, 3):
        high = (readings * power).map_blocks(highest, drop_axis=1, dtype=float)
        print(f"{high.mean().compute():.3f}")


if __name__ == "__main__":
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit="1.1GB",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster),
    ):
        main()
