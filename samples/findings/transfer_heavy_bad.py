"""Finding: transfer-heavy.

Of two cameras each has a worker that loads its images one after another and another that measures
them, as if they were machines for two jobs: all images travel.
"""

from __future__ import annotations

import dask
import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

IMAGES, SIDE = 30, 2_400


def loaded(number: int, before: float) -> np.ndarray:
    """An image of 46 MB, corrected by the brightness of the one before."""
    return np.full((SIDE, SIDE), number / 7 + before / 100)


def reduced(image: np.ndarray) -> float:
    """The mean of an image."""
    return float(image.mean())


def main(client: Client) -> None:
    """The brightness of the last image of each camera."""
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    brightness = [delayed(0.0), delayed(0.0)]
    for number in range(IMAGES):
        camera = number % 2
        with dask.annotate(workers=[workers[camera]]):
            image = delayed(loaded)(number, brightness[camera])
        with dask.annotate(workers=[workers[1 - camera]]):
            brightness[camera] = delayed(reduced)(image)
    for future in client.compute(brightness, optimize_graph=False):
        print(f"{future.result():.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        main(client)
