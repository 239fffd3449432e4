"""Finding: many-partitions-shuffle.

Groups the same orders by customer three times: each question shuffles all rows again.
"""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

DAYS, ROWS = 24, 150_000


def orders_of(day: int) -> pd.DataFrame:
    """The orders of a day."""
    random = np.random.default_rng(day)
    return pd.DataFrame(
        {"customer": random.integers(0, 90_000, ROWS), "amount": random.integers(1, 500, ROWS)}
    )


def above(orders: pd.DataFrame, least: int) -> pd.DataFrame:
    """The customers whose orders are worth more than so much, with their sum."""
    sums = orders.groupby("customer")["amount"].sum()
    return sums[sums > least].to_frame()


def main() -> None:
    """How many customers are above each of three limits."""
    orders = dd.from_map(orders_of, list(range(DAYS)), meta=orders_of(0).head(0))
    meta = above(orders_of(0).head(1), 0).head(0)
    counts = []
    for least in (5_000, 10_000, 15_000):
        by_customer = orders.shuffle("customer")
        counts.append(len(by_customer.map_partitions(above, least, meta=meta)))
    print(counts)


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
