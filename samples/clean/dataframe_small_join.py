"""Join readings with the few stations that made them, inside each partition, and average."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

STATIONS = 500


def readings_of(hour: int) -> pd.DataFrame:
    """An hour of readings."""
    random = np.random.default_rng(hour)
    rows = 900_000
    return pd.DataFrame(
        {"station": random.integers(0, STATIONS, rows), "value": random.normal(20, 5, rows)}
    )


def placed(readings: pd.DataFrame, stations: pd.DataFrame) -> pd.DataFrame:
    """The readings with the altitude of their stations."""
    return readings.merge(stations, on="station")


def main(size: float = 1.0) -> None:
    """Mean value by altitude band."""
    stations = pd.DataFrame(
        {"station": np.arange(STATIONS), "band": np.arange(STATIONS) * 7 % 9}
    )  # a few kB: it may travel with the graph
    readings = dd.from_map(readings_of, list(range(int(48 * size))), meta=readings_of(0).head(0))
    meta = placed(readings_of(0).head(1), stations).head(0)
    joined = readings.map_partitions(placed, stations, meta=meta)
    print(joined.groupby("band")["value"].mean().compute().round(2).to_dict())


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        main()
