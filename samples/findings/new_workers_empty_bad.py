"""Finding: new-workers-empty.

Is a digit even? The images are on one worker when the cluster grows, and stay there: the second
worker does not train.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import dask
import dask.array as da
import numpy as np
import xgboost as xgb
from distributed import Client, LocalCluster, wait
from sklearn.datasets import load_digits
from xgboost import dask as dxgb

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

CHUNKS, COPIES = 4, 48
PARAMETERS = {"objective": "binary:logistic", "tree_method": "hist", "max_bin": 64}


def noisy(block_id: tuple[int, ...]) -> Numbers:
    """Copies of the digits, each pixel up to two shades off."""
    images = np.tile(load_digits().data, (COPIES, 1))
    noise = np.random.default_rng(block_id).integers(-2, 3, images.shape)
    return (images + noise).astype("float32")


def even(copies: int) -> Numbers:
    """Whether they are even."""
    return np.tile(load_digits().target % 2 == 0, copies).astype("float32")


def main(cluster: LocalCluster) -> None:
    """Prints which share of the digits without noise the model tells."""
    client = Client.current()
    test, truth = load_digits(return_X_y=True)
    rows = (COPIES * len(truth),) * CHUNKS
    x = da.map_blocks(noisy, chunks=(rows, (64,)), dtype="float32", meta=np.empty((0, 0)))
    y = da.map_blocks(even, COPIES, chunks=(rows,), dtype="float32", meta=np.empty(0))
    x, y = dask.persist(x, y)
    wait([x, y])
    cluster.scale(2)
    client.wait_for_workers(2)
    data = dxgb.DaskQuantileDMatrix(client, x, y, max_bin=64)
    model = dxgb.train(client, PARAMETERS | {"max_depth": 5}, data, num_boost_round=100)
    told = model["booster"].predict(xgb.DMatrix(test)) > 0.5
    print(f"{(told == (truth % 2 == 0)).mean():.1f}")


if __name__ == "__main__":
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            dashboard_address=":0",
            preload=["xgboost.dask", "sklearn.datasets"],
        ) as started,
        Client(started),
    ):
        main(started)
