"""Finding: pieces-per-thread.

What is a house worth? XGBoost learns it from one table, read as one piece: one worker trains, and
the other has nothing to do.
"""

from __future__ import annotations

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, wait
from xgboost import dask as dxgb

ROWS = 600_000
FEATURES = [f"feature_{i}" for i in range(20)]


def houses_of(seed: int) -> pd.DataFrame:
    """A table of houses, as one file would hold it; the price follows three of the features."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(random.integers(0, 30, (ROWS, len(FEATURES))).astype("f4"), None, FEATURES)
    table["price"] = table["feature_0"] + 3 * table["feature_1"] + (table["feature_2"] > 10) * 50
    return table


def main() -> None:
    """Prints the typical error of the model's prices."""
    houses = dd.from_map(houses_of, [5], meta=houses_of(0).head(0))
    x, y = dask.persist(houses[FEATURES], houses["price"])
    wait([x, y])
    model = dxgb.DaskXGBRegressor(n_estimators=60, max_depth=6, tree_method="hist", max_bin=32)
    model.fit(x, y)
    test = houses_of(6).head(20_000)
    error = (model.get_booster().inplace_predict(test[FEATURES]) - test["price"]).abs().mean()
    print("the price of a house is known to", "within" if error < 10 else "beyond", "10 thousand")


if __name__ == "__main__":
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            preload=["xgboost.dask", "pandas"],
        ) as cluster,
        Client(cluster),
    ):
        main()
