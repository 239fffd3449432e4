"""Finding: task-shuffle, after the fix.

Sorts orders by customer with the P2P shuffle: the workers exchange rows among themselves.
"""

from __future__ import annotations

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

DAYS, ROWS = 48, 25_000


def orders_of(day: int) -> pd.DataFrame:
    """The orders of a day."""
    random = np.random.default_rng(day)
    return pd.DataFrame(
        {"customer": random.integers(0, 9_000, ROWS), "amount": random.random(ROWS)}
    )


def largest(orders: pd.DataFrame) -> pd.DataFrame:
    """The largest order of each customer."""
    return orders.sort_values("amount").groupby("customer").tail(1)


def main(method: str = "p2p") -> None:
    """The sum of the largest orders."""
    with dask.config.set({"dataframe.shuffle.method": method}):
        orders = dd.from_map(orders_of, list(range(DAYS)), meta=orders_of(0).head(0))
        by_customer = orders.shuffle("customer")
        meta = orders_of(0).head(0)
        total = by_customer.map_partitions(largest, meta=meta)["amount"].sum().compute()
    print(f"{total:.4f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
