"""Finding: root-overproduction, after the fix.

Loads images and keeps a thumbnail of each. The scheduler hands out as many as can be worked on at
a time, which is its default.
"""

from __future__ import annotations

import dask
import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

IMAGES = 60


@delayed
def loaded(number: int) -> np.ndarray:
    """An image of 24 MB."""
    return np.random.default_rng(number).random((1_500, 2_000))


@delayed
def thumbnail(image: np.ndarray) -> np.ndarray:
    """The image in a tenth of its size."""
    return image.reshape(150, 10, 200, 10).mean(axis=(1, 3))


@delayed
def brightness(image: np.ndarray) -> float:
    """The mean of an image."""
    return float(image.mean())


def main(saturation: float | str = 1.1) -> None:
    """The mean brightness of all images."""
    with (
        dask.config.set({"distributed.scheduler.worker-saturation": saturation}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="700MB"
        ) as cluster,
        Client(cluster),
    ):
        images = [brightness(thumbnail(loaded(number))) for number in range(IMAGES)]
        print(f"{np.mean(compute(*images)):.6f}")


if __name__ == "__main__":
    main()
