"""Finding: optimization-slow, after the fix.

Adds up a series term by term in one function for each chunk: one operation for the optimizer.
"""

from __future__ import annotations

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

POINTS, TERMS = 200_000, 320


def series_of(x: np.ndarray) -> np.ndarray:
    """The value of the series at each point."""
    series = np.zeros_like(x)
    for k in range(1, TERMS):
        series = series + np.sin(k * x + k) / k
    return series


def main() -> None:
    """The largest value of the series."""
    x = da.random.default_rng(3).random(POINTS, chunks=POINTS // 2)
    print(f"{x.map_blocks(series_of, dtype=x.dtype).max().compute():.9f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
