"""Finding: group-loop, after the fix.

How long customers of a shop stay with it and what they spend, for all customers at once.
"""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

MONTHS, ROWS, CUSTOMERS = 12, 8_000, 24_000


def visits_of(month: int) -> pd.DataFrame:
    """The visits of a month: who came when, and what they spent."""
    random = np.random.default_rng(month)
    return pd.DataFrame(
        {
            "customer": random.integers(0, CUSTOMERS, ROWS),
            "day": 30 * month + random.integers(0, 30, ROWS),
            "spent": random.integers(1, 200, ROWS),
        }
    )


def main() -> None:
    """The means over all customers."""
    visits = dd.from_map(visits_of, list(range(MONTHS)), meta=visits_of(0).head(0))
    known = visits.groupby("customer").agg({"day": ["min", "max"], "spent": "sum"}).compute()
    stayed = known["day", "max"] - known["day", "min"]
    print(f"{stayed.mean():.3f} {known['spent', 'sum'].mean():.3f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
