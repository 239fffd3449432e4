"""Load in tasks, reduce pairwise: what is big stays on the workers."""

from __future__ import annotations

import numpy as np
from dask import delayed
from dask.delayed import Delayed
from distributed import Client, LocalCluster


@delayed
def histogram(seed: int) -> np.ndarray:
    """Counts of a few million random values."""
    values = np.random.default_rng(seed).normal(size=2_500_000)
    return np.histogram(values, bins=200, range=(-5, 5))[0]


@delayed
def together(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Two histograms as one."""
    return a + b


def main(size: float = 1.0) -> None:
    """The fullest bin."""
    parts: list[Delayed] = [histogram(seed) for seed in range(max(2, int(96 * size)))]
    while len(parts) > 1:
        pairs = [together(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[len(pairs) * 2 :]
    print(int(parts[0].compute().argmax()))


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        main()
