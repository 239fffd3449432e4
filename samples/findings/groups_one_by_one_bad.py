"""Finding: groups-one-by-one.

The mean water level of each day of the year, by xarray without flox: each day's hours are cut out
of every year and put together again.
"""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr
from distributed import Client, LocalCluster

YEARS, GAUGES = 4, 2_000


def levels() -> xr.DataArray:
    """Hourly levels at all gauges, a year in a chunk as archives keep them."""
    time = pd.date_range("2021-01-01", periods=YEARS * 365 * 24, freq="h")
    shape = len(time), GAUGES
    noise = da.random.default_rng(7).normal(2.0, 0.5, shape, chunks=(365 * 24, GAUGES))
    return xr.DataArray(noise, {"time": time, "gauge": np.arange(GAUGES)}, ("time", "gauge"))


def main() -> None:
    """The largest of the daily means."""
    with xr.set_options(use_flox=False):
        by_day = levels().groupby("time.dayofyear").mean()
        print(f"{float(by_day.max().compute()):.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
