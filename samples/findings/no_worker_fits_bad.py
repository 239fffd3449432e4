"""Finding: no-worker-fits.

Simulates with a licence, for which workers are added when somebody has noticed that none has it.
"""

from __future__ import annotations

import threading

import numpy as np
from distributed import Client, LocalCluster

RUNS = 20
NOTICED_S = 4.0


def simulation(seed: int) -> float:
    """One run of what the licence is for."""
    rng = np.random.default_rng(seed)
    return float(np.mean([rng.standard_normal(100_000).std() for _ in range(30)]))


def licensed(cluster: LocalCluster) -> None:
    """Add two workers that may run one at a time each."""
    cluster.new_spec["options"]["resources"] = {"LICENCE": 1}
    cluster.scale(4)


def main(client: Client) -> None:
    """The mean of all runs."""
    futures = client.map(simulation, range(RUNS), resources={"LICENCE": 1})
    operator = threading.Timer(NOTICED_S, licensed, [client.cluster])
    operator.start()
    print(f"{np.mean(client.gather(futures)):.6f}")
    operator.join()


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
