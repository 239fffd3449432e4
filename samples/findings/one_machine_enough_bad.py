"""Finding: one-machine-enough.

Groups a table that fits into memory ten times over: pandas alone would be done before Dask has
handed out its tasks.
"""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

PARTS, ROWS = 3, 5_000


def part_of(number: int) -> pd.DataFrame:
    """A part of the table."""
    random = np.random.default_rng(number)
    return pd.DataFrame(
        {"shop": random.integers(0, 40, ROWS), "sales": random.integers(0, 99, ROWS)}
    )


def main() -> None:
    """The best shop of each of thirty questions."""
    table = dd.from_map(part_of, list(range(PARTS)), meta=part_of(0).head(0))
    best = []
    for least in range(30):
        sales = table[table["sales"] >= least].groupby("shop")["sales"].sum()
        best.append(int(sales.compute().idxmax()))
    print(best)


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
