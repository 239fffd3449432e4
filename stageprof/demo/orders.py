"""What did the customers of each region spend, and how do discounts matter? Slowly.

The kind of program that works, and takes longer than it should, for reasons that its code does
not show. `stageprof demo` profiles it.
"""

from __future__ import annotations

import logging
import time

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from distributed import Client, LocalCluster

#: Each partition of orders is a day; each has so many rows.
DAYS, ROWS = 12, 120_000
CUSTOMERS, REGIONS = 400_000, 40


def orders_of(day: int) -> pd.DataFrame:
    """The orders of a day, as a file would hold them."""
    random = np.random.default_rng(day)
    time.sleep(0.05)  # the storage answers
    return pd.DataFrame(
        {
            "customer": random.integers(0, CUSTOMERS, ROWS),
            "amount": random.integers(100, 50_000, ROWS),
            "note": random.choice(["gift", "return", "express", "pickup"], ROWS),
        }
    )


def rated(orders: pd.DataFrame, ratings: dict[int, float]) -> pd.DataFrame:
    """The orders with the rating of their customers: a lookup in a large dictionary, row by row."""
    return orders.assign(rating=[ratings.get(c, 0.0) for c in orders["customer"]])


def audited(day: int, number: int) -> int:
    """A check of one order: next to no work."""
    return (day * 7919 + number) % 97


def spending() -> pd.DataFrame:
    """Spending per region: a lookup that travels with every task, and a shuffle."""
    orders = dd.from_map(orders_of, list(range(DAYS)))
    ratings = {c: (c * 31 % 50) / 10 for c in range(CUSTOMERS)}
    scored = orders.map_partitions(rated, ratings)  # the dictionary goes into the graph
    customers = dd.from_pandas(
        pd.DataFrame({"customer": np.arange(CUSTOMERS), "region": np.arange(CUSTOMERS) % REGIONS}),
        npartitions=4,
    )
    joined = scored.merge(customers, on="customer")
    table: pd.DataFrame = joined.groupby("region")[["amount", "rating"]].mean().compute()
    return table


def audit() -> int:
    """Thousands of tasks that each take less time than their scheduling."""
    checks: list[Delayed] = []
    for day in range(DAYS):
        checks += [delayed(audited)(day, number) for number in range(100)]
    total: int = delayed(sum)(checks).compute()
    return total


def main() -> None:
    """Both questions on a cluster of two workers."""
    with _cluster() as cluster, Client(cluster):
        print(spending().sort_values("amount").tail(3).round(2).to_string())  # noqa: T201
        print(f"audit: {audit()}")  # noqa: T201


def _cluster() -> LocalCluster:
    return LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=logging.ERROR,
    )


if __name__ == "__main__":
    main()
