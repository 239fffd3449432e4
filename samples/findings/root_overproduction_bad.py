"""Finding: root-overproduction.

Makes a canvas for each map and draws on it. Queuing is switched off, so the workers make all
canvases before they draw on the first, and memory fills up.
"""

from __future__ import annotations

import dask
import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

MAPS, SIDE = 160, 2_000


@delayed
def canvas(_number: int) -> np.ndarray:
    """An empty canvas of 32 MB, which takes no time to make."""
    return np.zeros((SIDE, SIDE))


@delayed
def drawn(empty: np.ndarray, number: int) -> float:
    """How dark a map is, once its lines are drawn."""
    image = empty.copy()
    for line in range(0, SIDE, 10):
        image[line] = np.sin(np.arange(SIDE) * number + line)
    return float(np.sqrt(np.abs(image)).mean())


def main(saturation: float | str = "inf") -> None:
    """The mean darkness of all maps."""
    with (
        dask.config.set({"distributed.scheduler.worker-saturation": saturation}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="500MB"
        ) as cluster,
        Client(cluster),
    ):
        maps = [drawn(canvas(number), number) for number in range(MAPS)]
        print(f"{np.mean(compute(*maps)):.6f}")


if __name__ == "__main__":
    main()
