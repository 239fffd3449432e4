"""Finding: repeated-scatter.

Scatters a table of distances for each of the tasks that look something up in it.
"""

from __future__ import annotations

import numpy as np
from distributed import Client, Future, LocalCluster

TASKS = 60
SIDE = 3_000


def farthest(distances: np.ndarray, place: int) -> float:
    """How far the farthest place is, with one stop on the way where that is shorter."""
    over_one = distances[place][:, None] + distances
    return float(np.minimum(over_one.min(axis=0), distances[place]).max())


def main(client: Client) -> None:
    """The mean distance to the farthest place."""
    distances = np.random.default_rng(4).random((SIDE, SIDE))
    found: list[Future] = []
    for place in range(TASKS):
        table = client.scatter(distances, hash=False)
        found.append(client.submit(farthest, table, place))
    print(f"{np.mean(client.gather(found)):.9f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
