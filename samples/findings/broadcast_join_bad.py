"""Finding: broadcast-join.

Sales are joined with the stores that they were made in: a table of two thousand rows, read from
twelve files, for which all sales are shuffled.
"""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

DAYS, SALES, STORES = 24, 400_000, 2_000


def sales_of(day: int) -> pd.DataFrame:
    """The sales of a day."""
    random = np.random.default_rng(day)
    store = random.integers(0, STORES, SALES)
    return pd.DataFrame({"store": store, "amount": random.gamma(2.0, 20.0, SALES)})


def main() -> None:
    """The mean sale in each region."""
    sales = dd.from_map(sales_of, range(DAYS), meta=sales_of(0).head(0))
    table = pd.DataFrame({"store": range(STORES), "region": np.arange(STORES) % 20})
    stores = dd.from_pandas(table, npartitions=12)
    joined = sales.merge(stores, on="store")
    means = joined.groupby("region")["amount"].mean().compute().sort_index()
    print(" ".join(f"{mean:.4f}" for mean in means[:5]))


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
