"""What is normal, and is it warmer? Mean temperature by month and day, each year's anomaly.

Daily temperatures on a grid of the world, in chunks of one year as archives keep them. The normal
is a mean over all years; the anomaly is the distance from the normal of the month.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import dask.array as da
import numpy as np
import pandas as pd
import xarray as xr
from dask.base import compute

from program import Row, Settings, main

SEED = 1850
FIRST_YEAR = 1989
WARMING = 0.03  # degrees a year

#: Years, and degrees between grid points.
SHAPES = {"small": (2, 5.0), "full": (20, 2.0)}


def run(settings: Settings) -> list[Row]:
    """Rows of month, day of the year or year, and degrees."""
    air = temperatures(*SHAPES[settings.size])
    by_month = air.groupby("time.month")
    # A mean by group has a chunk for each group; one chunk keeps what follows from as many tasks.
    normal = by_month.mean().chunk(month=-1)
    anomaly = by_month - normal
    means = (
        north(normal),
        world(anomaly.groupby("time.year").mean()),
        north(air.groupby("time.dayofyear").mean().chunk(dayofyear=-1)),
    )
    return [row for mean in compute(*means) for row in labelled(mean)]


def labelled(mean: xr.DataArray) -> Iterator[Row]:
    """One row for each value along the only dimension."""
    (name,) = mean.dims
    for label, degrees in zip(mean[name].values, mean.values, strict=True):
        yield str(name), int(label), float(degrees)


def temperatures(years: int, step: float) -> xr.DataArray:
    """Made-up temperatures: seasons, colder to the poles, slow warming and weather."""
    time = pd.date_range(f"{FIRST_YEAR}-01-01", f"{FIRST_YEAR + years - 1}-12-31")
    lat = np.arange(-90 + step / 2, 90, step)
    lon = np.arange(0, 360, step)
    shape = (len(time), len(lat), len(lon))
    weather = da.random.default_rng(SEED).normal(0, 3, shape, chunks=(365, -1, -1))
    noise = xr.DataArray(weather, {"time": time, "lat": lat, "lon": lon}, ("time", "lat", "lon"))
    air: xr.DataArray = noise + seasons(noise) + WARMING * (noise.time.dt.year - FIRST_YEAR)
    return air


def seasons(grid: xr.DataArray) -> xr.DataArray:
    """The temperature to expect by day of the year and latitude."""
    turn = np.cos(2 * np.pi * (grid.time.dt.dayofyear - 15) / 365.25)
    expected: xr.DataArray = 28 - 0.006 * grid.lat**2 - turn * grid.lat / 6
    return expected


def north(field: xr.DataArray) -> xr.DataArray:
    """The mean over the northern half, where seasons do not cancel out."""
    return world(field.sel(lat=slice(0, 90)))


def world(field: xr.DataArray) -> xr.DataArray:
    """The mean over the grid, whose cells grow narrow towards the poles."""
    return field.weighted(np.cos(np.deg2rad(field.lat))).mean(("lat", "lon"))


if __name__ == "__main__":
    sys.exit(main("climatology", __doc__, run))
