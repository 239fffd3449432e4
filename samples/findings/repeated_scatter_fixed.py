"""Finding: repeated-scatter, after the fix.

Scatters a table of distances once, for all tasks that look something up in it.
"""

from __future__ import annotations

import numpy as np
from distributed import Client, LocalCluster

TASKS = 60
SIDE = 3_000


def nearest(distances: np.ndarray, place: int) -> float:
    """How far the next place is."""
    return float(np.delete(distances[place], place).min())


def main(client: Client) -> None:
    """The mean distance to the next place."""
    distances = np.random.default_rng(4).random((SIDE, SIDE))
    table = client.scatter(distances, hash=False)
    found = [client.submit(nearest, table, place) for place in range(TASKS)]
    print(f"{np.mean(client.gather(found)):.9f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
