"""Finding: unfused-frame.

Derives columns from others in a dozen operations, each of which is a task for each partition:
`compute` does not fuse them.
"""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

PARTS, ROWS = 120, 60_000


def readings(day: int) -> pd.DataFrame:
    """A day of a weather station."""
    random = np.random.default_rng(day)
    return pd.DataFrame({"celsius": random.normal(12, 8, ROWS), "wind": random.gamma(2, 3, ROWS)})


def main() -> None:
    """The mean of what the cold feels like on windy minutes."""
    frame = dd.from_map(readings, range(PARTS), meta=readings(0).head(0))
    frame["gust"] = frame["wind"] * 1.6 + 1
    frame["chill"] = 13.12 + frame["celsius"] * 0.6215 - frame["wind"] * 11.37
    frame["felt"] = frame["chill"] + frame["gust"] * 0.4
    felt = frame[frame["wind"] > 2]["felt"].sum()
    print(f"{felt.compute():.3f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
