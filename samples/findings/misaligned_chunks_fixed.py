"""Finding: misaligned-chunks, after the fix.

What many stations measured, in a compressed file whose chunks are hours of all stations: each task
takes a chunk, which is unpacked once.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import dask.array as da
import h5py
import numpy as np
from distributed import Client, LocalCluster

HOURS, STATIONS = 4_800, 4_800
#: The chunks of the file, and those that are asked for.
STORED, ASKED = (200, STATIONS), (200, STATIONS)


def write(path: Path) -> None:
    """The file as it came."""
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        kept = file.create_dataset(
            "measured", (HOURS, STATIONS), "f4", chunks=STORED, compression="gzip"
        )
        for hour in range(0, HOURS, STORED[0]):
            kept[hour : hour + STORED[0]] = random.normal(20, 5, STORED).round(1)


def main(path: Path) -> None:
    """How much each station's values differ, on average."""
    with h5py.File(path) as file:
        measured = da.from_array(file["measured"], chunks=ASKED)
        print(f"{measured.std(axis=0).mean().compute():.4f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
        tempfile.TemporaryDirectory() as given,
    ):
        write(Path(given) / "measured.h5")
        main(Path(given) / "measured.h5")
