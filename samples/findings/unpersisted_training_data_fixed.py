"""Finding: unpersisted-training-data, after the fix.

Which depth of trees tells digits best? The noisy images are made once and kept on the workers.
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

Images: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

CHUNKS, COPIES = 8, 6
PARAMETERS = {"objective": "multi:softprob", "num_class": 10, "tree_method": "hist", "max_bin": 64}


def features(images: Images) -> Images:
    """What the model looks at: the pixels, and how strong each frequency is in them."""
    frequencies = np.abs(np.fft.fft2(images.reshape(-1, 8, 8))).reshape(len(images), 64)
    return np.hstack([images, frequencies.round()]).astype("float32")


def noisy(block_id: tuple[int, ...]) -> Images:
    """The features of copies of the digits, with the mean of many noises added to each."""
    random = np.random.default_rng(block_id)
    images = np.tile(load_digits().data, (COPIES, 1))
    noise = sum(random.normal(0, 8, images.shape) for _ in range(25)) / 25
    return features((images + noise).round())


def digits(copies: int) -> Images:
    """Which digits they are."""
    return np.tile(load_digits().target, copies).astype("float32")


def main() -> None:
    """Prints which share of the digits without noise each model tells."""
    client = Client.current()
    test, truth = load_digits(return_X_y=True)
    rows = (COPIES * len(truth),) * CHUNKS
    x = da.map_blocks(noisy, chunks=(rows, (128,)), dtype="float32", meta=np.empty((0, 0)))
    y = da.map_blocks(digits, COPIES, chunks=(rows,), dtype="float32", meta=np.empty(0))
    x, y = dask.persist(x, y)
    wait([x, y])
    for depth in (2, 3, 4, 5):
        data = dxgb.DaskQuantileDMatrix(client, x, y, max_bin=64)
        model = dxgb.train(client, PARAMETERS | {"max_depth": depth}, data, num_boost_round=4)
        told = model["booster"].predict(xgb.DMatrix(features(test))).argmax(axis=1)
        print(f"depth {depth}: {(told == truth).mean():.1f}")


if __name__ == "__main__":
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            preload=["xgboost.dask", "sklearn.datasets"],
        ) as cluster,
        Client(cluster),
    ):
        main()
