"""Finding: unused-data.

Adds up what one of many sensors measured. Each file is read whole, and one column is used.
"""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

DAYS, ROWS = 24, 400_000
SENSORS = [f"sensor{number}" for number in range(30)]


def column(day: int, sensor: str) -> np.ndarray:
    """What a sensor measured on a day, unpacked and smoothed as it comes from its file."""
    random = np.random.default_rng([day, int(sensor.removeprefix("sensor"))])
    return random.normal(20, 5, ROWS).round(2)


def readings_of(day: int) -> pd.DataFrame:
    """A day of readings."""
    return pd.DataFrame({sensor: column(day, sensor) for sensor in SENSORS})


def main() -> None:
    """The mean of one sensor."""
    meta = pd.DataFrame({sensor: [0.0] for sensor in SENSORS})
    readings = dd.from_map(readings_of, list(range(DAYS)), meta=meta)
    print(f"{readings['sensor7'].mean().compute():.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
