"""Finding: gc-pressure, after the fix.

Builds indexes as arrays: nothing for the garbage collector to go through.
"""

from __future__ import annotations

import numpy as np
from dask import compute, delayed
from distributed import Client, LocalCluster

PARTS, ENTRIES = 6, 400_000


@delayed
def indexed(part: int) -> np.ndarray:
    """An entry for each number."""
    return (part + np.arange(ENTRIES)) * 7 % 1_009


@delayed
def counted(index: np.ndarray) -> int:
    """How many entries point to a small number."""
    return int((index < 100).sum())


def main() -> None:
    """The sum over all parts."""
    print(sum(compute(*[counted(indexed(part)) for part in range(PARTS)])))


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
