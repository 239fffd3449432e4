"""Finding: large-graph.

Standardizes an image in tiles of 200 x 200 pixels: thousands of tasks of a millisecond.
"""

from __future__ import annotations

import dask.array as da
from distributed import Client, LocalCluster

SIDE, TILE = 8_000, 200


def main() -> None:
    """The largest deviation from the mean of its row."""
    image = da.random.default_rng(5).random((SIDE, SIDE), chunks=SIDE // 4).rechunk(TILE)
    deviation = abs(image - image.mean(axis=1, keepdims=True)) / image.std(axis=1, keepdims=True)
    print(f"{deviation.max().compute():.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
