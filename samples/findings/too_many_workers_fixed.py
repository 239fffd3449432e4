"""Finding: too-many-workers, after the fix.

Two workers for a chain of steps over two series: each has one to do.
"""

from __future__ import annotations

import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

STEPS = 12


@delayed
def stepped(values: np.ndarray) -> np.ndarray:
    """The values after a step."""
    return np.sort(np.cos(values * 3.7), kind="stable")[::-1].copy()


def main(workers: int = 2) -> None:
    """The sums of both series."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        ends = [delayed(np.linspace)(0, series + 1, 1_500_000) for series in range(2)]
        for _ in range(STEPS):
            ends = [stepped(values) for values in ends]
        print(f"{sum(compute(*[end.sum() for end in ends])):.4f}")


if __name__ == "__main__":
    main()
