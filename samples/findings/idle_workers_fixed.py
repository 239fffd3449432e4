"""Finding: idle-workers, after the fix.

Transforms a signal in several chunks for each thread.
"""

from __future__ import annotations

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

PARTS, ROWS = 8, 24_000_000


def transformed(block: np.ndarray) -> np.ndarray:
    """The largest component of each stretch of a signal."""
    stretches = block.reshape(-1, 6_000)
    return np.array(
        [np.sort(np.abs(np.fft.rfft(stretch)), kind="stable")[-2] for stretch in stretches]
    )


def main() -> None:
    """The largest value."""
    values = (da.arange(ROWS, chunks=ROWS // PARTS) * 7919) % 10007.0
    sizes = ((ROWS // 6_000 // PARTS,) * PARTS,)
    spectrum = values.map_blocks(transformed, dtype="f8", chunks=sizes)
    print(f"{spectrum.max().compute():.2f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
