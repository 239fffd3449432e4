"""Finding: embedded-object, after the fix.

Scores orders with a table of weights. The table is made in a task of its own, and each worker gets
it once.
"""

from __future__ import annotations

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

CUSTOMERS, DAYS, ROWS = 4_000_000, 24, 100_000


def weights_of_customers() -> pd.DataFrame:
    """A weight for each customer: 64 MB."""
    random = np.random.default_rng(0)
    return pd.DataFrame({"weight": random.random(CUSTOMERS), "bonus": random.random(CUSTOMERS)})


def orders_of(day: int) -> pd.DataFrame:
    """The orders of a day."""
    random = np.random.default_rng(day)
    return pd.DataFrame(
        {"customer": random.integers(0, CUSTOMERS, ROWS), "amount": random.random(ROWS)}
    )


def scored(orders: pd.DataFrame, weights: pd.DataFrame) -> pd.DataFrame:
    """Each order's amount, weighted."""
    chosen = weights.loc[orders["customer"]]
    score = orders["amount"].to_numpy() * chosen["weight"].to_numpy() + chosen["bonus"].to_numpy()
    return orders.assign(score=score)


def main() -> None:
    """The mean score."""
    weights = dask.delayed(weights_of_customers)()
    orders = dd.from_map(orders_of, list(range(DAYS)), meta=orders_of(0).head(0))
    meta = orders_of(0).head(0).assign(score=0.0)
    mean = orders.map_partitions(scored, weights, meta=meta)["score"].mean().compute()
    print(f"{mean:.6f}")


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
