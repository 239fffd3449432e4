"""Finding: repeated-compute.

Asks three questions of the same readings, one after the other: each compute makes them anew.
"""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

DAYS, ROWS = 24, 2_000_000


def readings_of(day: int) -> pd.DataFrame:
    """The readings of a day, as a file would hold them."""
    random = np.random.default_rng(day)
    return pd.DataFrame({"sensor": random.integers(0, 50, ROWS), "value": random.normal(size=ROWS)})


def main() -> None:
    """Mean, spread and the most active sensor."""
    readings = dd.from_map(readings_of, list(range(DAYS)), meta=readings_of(0).head(0))
    mean = readings["value"].mean().compute()
    spread = readings["value"].std().compute()
    busiest = readings["sensor"].value_counts().compute().idxmax()
    print(f"{mean:.6f} {spread:.6f} {busiest}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
