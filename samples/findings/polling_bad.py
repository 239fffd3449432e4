"""Finding: polling.

Simulates walks, twice, and looks every three seconds whether they are done.
"""

from __future__ import annotations

import time

import numpy as np
from distributed import Client, LocalCluster

WALKS, STEPS = 12, 2_000_000


def walk(seed: int, drift: float) -> float:
    """How far a walk gets."""
    steps = np.random.default_rng(seed).normal(drift, 1, STEPS)
    return float(np.abs(np.cumsum(steps)).max())


def farthest(client: Client, drift: float) -> float:
    """How far the best of them gets."""
    futures = client.map(walk, range(WALKS), drift=drift)
    while not all(future.done() for future in futures):
        time.sleep(3)
    return max(client.gather(futures))


def main(client: Client) -> None:
    """Without drift, and with a drift that depends on it."""
    alone = farthest(client, 0.0)
    print(f"{alone:.4f} {farthest(client, alone / STEPS):.4f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
