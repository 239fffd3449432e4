"""Finding: tasks-wait-for-tasks.

Simulates the days of a season in tasks of one task, which keeps its thread while it waits for them.
"""

from __future__ import annotations

import numpy as np
from distributed import Client, LocalCluster, get_client

DAYS = 140
STEPS = 100


def day(number: int) -> float:
    """One day of weather."""
    state = np.random.default_rng(number).normal(size=20_000)
    for _ in range(STEPS):
        state = 0.99 * state + np.sin(np.roll(state, 1))
    return float(state.mean())


def season(days: int) -> float:
    """The mean of all its days."""
    client = get_client()
    return float(np.mean(client.gather(client.map(day, range(days)))))


def main(client: Client) -> None:
    """The mean of a season."""
    print(f"{client.submit(season, DAYS).result():.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
