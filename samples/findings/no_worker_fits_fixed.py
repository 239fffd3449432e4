"""Finding: no-worker-fits, after the fix.

Simulates with a licence that workers have from the start.
"""

from __future__ import annotations

import numpy as np
from distributed import Client, LocalCluster

RUNS = 20


def simulation(seed: int) -> float:
    """One run of what the licence is for."""
    rng = np.random.default_rng(seed)
    return float(np.mean([rng.standard_normal(100_000).std() for _ in range(30)]))


def main(client: Client) -> None:
    """The mean of all runs."""
    futures = client.map(simulation, range(RUNS), resources={"LICENCE": 1})
    print(f"{np.mean(client.gather(futures)):.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, resources={"LICENCE": 1}, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        main(client)
