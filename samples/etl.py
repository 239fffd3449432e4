"""Which customers come back? Revenue and days between orders, per country and segment.

Reads orders and customers from Parquet, drops orders that were exported twice, brings those of
each customer together, joins and groups them. Sums are of whole cents and days, so that the order
of adding never shows in the result.
"""

from __future__ import annotations

import sys

import dask.dataframe as dd
import pandas as pd

import make_data
from program import Row, Settings, main


def run(settings: Settings) -> list[Row]:
    """The report as rows: country, segment, orders, cents, returning orders, days between them."""
    folder = make_data.folder(settings)
    orders = dd.read_parquet(str(folder / "orders"))
    customers = dd.read_parquet(str(folder / "customers"))
    table: pd.DataFrame = report(orders, customers).compute()
    return [(*key, *map(int, row)) for key, row in zip(table.index, table.to_numpy(), strict=True)]


def report(orders: dd.DataFrame, customers: dd.DataFrame) -> dd.DataFrame:
    """Sums per country and segment over the orders that were kept."""
    once = orders.drop_duplicates(subset=["order"], split_out=orders.npartitions)
    kept = once[once.state == "paid"]
    kept = kept.assign(cents=kept.cents * kept.quantity)[["customer", "day", "cents"]]
    # A customer's orders lie in many files; the days between them need all in one partition.
    visits = kept.shuffle("customer").map_partitions(with_gaps)
    joined = visits.merge(customers, on="customer")
    groups = joined.groupby(["country", "segment"])
    sums: dd.DataFrame = groups[["orders", "cents", "returns", "gap"]].sum()
    return sums


def with_gaps(visits: pd.DataFrame) -> pd.DataFrame:
    """Adds to each order the days since the same customer's order before, 0 for the first."""
    visits = visits.sort_values(["customer", "day"])
    gap = visits.groupby("customer")["day"].diff()
    return visits.assign(
        orders=1,
        returns=gap.notna().astype("int64"),
        gap=gap.fillna(0).astype("int64"),
    )


if __name__ == "__main__":
    sys.exit(main("etl", __doc__, run, prepare=make_data.make))
