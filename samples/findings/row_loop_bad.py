"""Finding: row-loop.

Adds up what customers owe, order by order, in a loop over the rows of each partition.
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
    total = 0
    for _, order in orders.iterrows():
        if not order["paid"]:
            rebate = 10 if order["amount"] > 250 else 0
            total += order["amount"] * (order["price"] - rebate)
    return pd.Series([total])


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
