"""Finding: text-files, after the fix.

What weather stations measured, as Parquet: it was converted once, as the finding says.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

FILES, ROWS = 60, 150_000
MEASURED = ["temperature", "pressure", "humidity", "wind", "rain", "light"]


def write(folder: Path) -> None:
    """The files after they were converted."""
    random = np.random.default_rng(1)
    day = pd.DataFrame({name: random.normal(20, 5, ROWS) for name in MEASURED})
    day["station"] = random.integers(0, 50, ROWS)
    day.to_parquet(folder / "00.parquet")
    for number in range(1, FILES):
        (folder / f"{number:02}.parquet").hardlink_to(folder / "00.parquet")


def main(folder: Path) -> None:
    """The mean of all that was measured, by station."""
    measured = dd.read_parquet(folder)
    means = measured.groupby("station").mean().compute()
    print(f"{means[MEASURED].to_numpy().sum():.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
        tempfile.TemporaryDirectory() as given,
    ):
        write(Path(given))
        main(Path(given))
