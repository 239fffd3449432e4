"""Finding: transfer-heavy.

Compares every block of measurements with every other: the blocks travel between the workers again
and again.
"""

from __future__ import annotations

import numpy as np
from dask import compute, delayed
from dask.delayed import Delayed
from distributed import Client, LocalCluster

BLOCKS, ROWS = 8, 4_000_000


@delayed
def block_of(number: int) -> np.ndarray:
    """A block of measurements, 32 MB."""
    return np.random.default_rng(number).random(ROWS)


@delayed
def distance(a: np.ndarray, b: np.ndarray) -> float:
    """How far two blocks are apart."""
    return float(np.abs(a - b).mean())


def main() -> None:
    """The largest distance."""
    blocks: list[Delayed] = [block_of(number) for number in range(BLOCKS)]
    pairs = [distance(a, b) for i, a in enumerate(blocks) for b in blocks[:i]]
    print(f"{max(compute(*pairs)):.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
