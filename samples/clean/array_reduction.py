"""Mean and spread of each column of a large random array: chunks of 64 MB, one compute."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster


def main(size: float = 1.0) -> None:
    """Both figures in one pass over the data."""
    rows = int(24 * size) * 8_000
    x = da.random.default_rng(1).normal(size=(rows, 1_000), chunks=(8_000, 1_000))
    mean, spread = dask.compute(x.mean(axis=0), x.std(axis=0))
    print(f"{np.abs(mean).max():.2f} {spread.mean():.2f}")


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        main()
