"""Finding: row-loop, after the fix.

Adds up what customers owe on whole columns: a mask for the loop's `if`, `sum()` for its `+=`.
"""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

DAYS, ROWS = 12, 15_000


def orders_of(day: int) -> pd.DataFrame:
    """The orders of a day."""
    random = np.random.default_rng(day)
    return pd.DataFrame(
        {
            "amount": random.integers(1, 500, ROWS),
            "price": random.integers(1, 90, ROWS),
            "paid": random.random(ROWS) < 0.4,
        }
    )


def owed(orders: pd.DataFrame) -> pd.Series:
    """What was not paid, with the rebate for large orders."""
    columns = {name: orders[name].to_numpy() for name in orders.columns}
    rebate = np.where(columns["amount"] > 250, 10, 0)
    owing = columns["amount"] * (columns["price"] - rebate)
    return pd.Series([owing[~columns["paid"]].sum()])


def main() -> None:
    """The sum over all days."""
    orders = dd.from_map(orders_of, list(range(DAYS)), meta=orders_of(0).head(0))
    print(orders.map_partitions(owed, meta=pd.Series(dtype="int64")).sum().compute())


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
