"""Finding: column-chunks-for-training.

Which learning rate suits houses like those of California? Location, size and surroundings of the
houses come from three sources, and their columns lie side by side in pieces: every training puts
them together anew before it can look at a house as a whole.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from xgboost import dask as dxgb

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

CHUNKS, ROWS, COLUMNS, VIEWS, FEATURES = 8, 20_000, 50, 1_800, 12
PARAMETERS = {"tree_method": "hist", "max_depth": 3, "max_bin": 64, "verbosity": 0}


def source(number: int, block_id: tuple[int, ...]) -> Numbers:
    """One source's columns, in whole steps, of some of the houses."""
    random = np.random.default_rng([number, *block_id])
    return random.integers(0, 16, (ROWS, COLUMNS)).astype("float32")


def features(houses: Numbers) -> Numbers:
    """Random Fourier features: how far each house is along many directions through all columns."""
    random = np.random.default_rng(9)
    directions = random.normal(0, 0.05, (houses.shape[1], VIEWS)).astype("float32")
    waves = np.cos(houses @ directions).reshape(len(houses), FEATURES, -1)
    return waves.mean(axis=2).round(3)


def main() -> None:
    """Prints how many trees each model has."""
    client = Client.current()
    shape = {"chunks": ((ROWS,) * CHUNKS, (COLUMNS,)), "dtype": "float32"}
    sources = [da.map_blocks(source, n, meta=np.empty((0, 0)), **shape) for n in range(3)]
    houses = da.concatenate(sources, axis=1)
    price = houses[:, 0] + houses[:, 50] * houses[:, 100]
    houses, price = dask.persist(houses, price)
    wait([houses, price])
    x = houses.rechunk({1: -1}).map_blocks(
        features, chunks=((ROWS,) * CHUNKS, (FEATURES,)), dtype="float32", meta=np.empty((0, 0))
    )
    for rate in (0.2, 0.3, 0.4, 0.5):
        data = dxgb.DaskQuantileDMatrix(client, x, price, max_bin=64)
        model = dxgb.train(client, PARAMETERS | {"eta": rate}, data, num_boost_round=3)
        print(f"rate {rate}: {len(model['booster'].get_dump())} trees")


if __name__ == "__main__":
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", preload=["xgboost.dask"]
        ) as cluster,
        Client(cluster),
    ):
        main()
