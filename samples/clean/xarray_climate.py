"""How much warmer is each month than the mean of all: xarray over Dask, chunked by time."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr
from distributed import Client, LocalCluster


def year_of(block: np.ndarray, block_info: dict | None = None) -> np.ndarray:
    """Temperatures of one chunk of days."""
    first = block_info[None]["array-location"][0][0] if block_info else 0
    random = np.random.default_rng(first)
    days = first + np.arange(block.shape[0])
    season = 10 * np.sin(2 * np.pi * days / 365.25)
    return season[:, None, None] + random.normal(15, 3, block.shape)


def main(size: float = 1.0) -> None:
    """The warmest month's anomaly."""
    days = max(1, int(60 * size)) * 240
    empty = da.empty((days, 90, 180), chunks=(240, 90, 180))
    data = empty.map_blocks(year_of, dtype="f8", meta=np.empty((0, 0, 0)))
    time = pd.date_range("2000-01-01", periods=days)
    field = xr.DataArray(data, dims=("time", "lat", "lon"), coords={"time": time})
    by_day = field.mean(("lat", "lon")).compute()
    anomaly = by_day.groupby("time.month").mean() - by_day.mean()
    print(f"{float(anomaly.max()):.1f}")


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        main()
