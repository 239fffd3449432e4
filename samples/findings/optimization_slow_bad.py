"""Finding: optimization-slow.

Adds up a series term by term. Each term is some operations on a Dask array, and the optimizer takes
long to find out that they all fit into one function.
"""

from __future__ import annotations

import dask.array as da
from distributed import Client, LocalCluster

POINTS, TERMS = 200_000, 320


def main() -> None:
    """The largest value of the series."""
    x = da.random.default_rng(3).random(POINTS, chunks=POINTS // 2)
    series = da.zeros_like(x)
    for k in range(1, TERMS):
        series = series + da.sin(k * x + k) / k
    print(f"{series.max().compute():.9f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
