"""Finding: idle-workers.

Transforms a signal in a single chunk on a cluster of two threads: one of them never works.
"""

from __future__ import annotations

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

PARTS, ROWS = 1, 24_000_000


def transformed(block: np.ndarray) -> np.ndarray:
    """The spectrum of each stretch of a signal, in order."""
    return np.sort(np.sqrt(np.abs(np.fft.rfft(block.reshape(-1, 6_000), axis=1))).ravel())


def main() -> None:
    """The largest value."""
    values = (da.arange(ROWS, chunks=ROWS // PARTS) * 7919) % 10007.0
    spectrum = values.map_blocks(transformed, dtype="f8", chunks=((1,) * PARTS,))
    print(f"{spectrum.max().compute():.2f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
