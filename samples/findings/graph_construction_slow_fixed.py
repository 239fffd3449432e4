"""Finding: graph-construction-slow, after the fix.

Replaces words by their rank in twelve orders. Dask is told what each `map_partitions` returns, so
that it need not call the function to find out.
"""

from __future__ import annotations

import functools

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

PARTS, ROWS, WORDS, ORDERS = 4, 50_000, 1_500_000, 12


def texts_of(part: int) -> pd.DataFrame:
    """Words of a part, as numbers."""
    return pd.DataFrame({"word": np.random.default_rng(part).integers(0, WORDS, ROWS)})


@functools.cache
def ranks(order: int) -> np.ndarray:
    """The rank of each word in an order; each process makes it once."""
    return np.random.default_rng(order).random(WORDS).argsort(kind="stable")


def ranked(texts: pd.DataFrame, order: int) -> pd.DataFrame:
    """The texts with their ranks in an order."""
    return texts.assign(**{f"rank{order}": ranks(order)[texts["word"].to_numpy()]})


def main() -> None:
    """The sum of all ranks."""
    meta = texts_of(0).head(0)
    texts = dd.from_map(texts_of, list(range(PARTS)), meta=meta)
    for order in range(ORDERS):
        meta = meta.assign(**{f"rank{order}": 0})
        texts = texts.map_partitions(ranked, order, meta=meta)
    print(int(texts.sum().compute().sum()))


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        main()
