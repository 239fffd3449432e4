"""Fit a linear model to more rows than one would like to hold: products of blocks, then a solve."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster


def main(size: float = 1.0) -> None:
    """The fitted coefficients are those that the data were made with."""
    rows, columns = int(12 * size) * 30_000, 120
    x = da.random.default_rng(3).normal(size=(rows, columns), chunks=(30_000, columns))
    truth = np.arange(columns) / columns
    y = x @ truth
    square, product = dask.compute(x.T @ x, x.T @ y)
    found = np.linalg.solve(square, product)
    print(f"largest error {np.abs(found - truth).max():.6f}")


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        main()
