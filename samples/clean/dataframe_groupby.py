"""Spending per region and month: partitions are made by tasks, and the result is small."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster


def orders_of(day: int) -> pd.DataFrame:
    """A day of orders, as a file would hold them."""
    random = np.random.default_rng(day)
    rows = 1_200_000
    return pd.DataFrame(
        {
            "region": random.integers(0, 40, rows),
            "month": np.full(rows, day % 12, "int8"),
            "amount": random.gamma(2.0, 40.0, rows),
        }
    )


def main(size: float = 1.0) -> None:
    """The best month of the best region."""
    orders = dd.from_map(orders_of, list(range(int(48 * size))), meta=orders_of(0).head(0))
    table = orders.groupby(["region", "month"])["amount"].agg(["sum", "mean"]).compute()
    print(f"{table['sum'].max():.0f} {table['mean'].mean():.2f}")


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster):
        main()
