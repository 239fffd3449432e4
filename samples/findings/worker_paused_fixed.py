"""Finding: worker-paused, after the fix.

Looks how high the water stands after a storm, scenario by scenario. A worker has memory enough for
the map of the land.
"""

from __future__ import annotations

import dask
import numpy as np
from distributed import Client, LocalCluster

SCENARIOS, SIDE, STORMS = 60, 4_000, 1_000_000


def level(scenario: int) -> float:
    """How high the water stands in the worst of a thousand storms, on a map of 128 MB."""
    land = np.full((SIDE, SIDE), float(scenario))
    rain = np.sort(np.random.default_rng(scenario).gamma(2.0, size=STORMS), kind="stable")
    return float(land[0, 0] + rain[-STORMS // 1_000])


def main() -> None:
    """The mean over all scenarios."""
    levels = [dask.delayed(level)(scenario) for scenario in range(SCENARIOS)]
    print(f"{dask.delayed(sum)(levels).compute() / SCENARIOS:.9f}")


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
