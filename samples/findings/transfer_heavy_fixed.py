"""Finding: transfer-heavy, after the fix.

Compares every block of measurements with every other: what a task needs it makes itself, for that
is quicker than fetching it.
"""

from __future__ import annotations

import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

BLOCKS, ROWS = 8, 4_000_000


def block_of(number: int) -> np.ndarray:
    """A block of measurements, 32 MB."""
    return np.random.default_rng(number).random(ROWS)


@delayed
def distances(number: int) -> list[float]:
    """How far a block is from each one before it."""
    block = block_of(number)
    return [float(np.abs(block - block_of(other)).mean()) for other in range(number)]


def main() -> None:
    """The largest distance."""
    rows = compute(*[distances(number) for number in range(BLOCKS)])
    print(f"{max(max(row, default=0.0) for row in rows):.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
