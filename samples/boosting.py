"""Which digit is it? Trains XGBoost on noisy copies of handwritten digits, spread over workers.

The images come with scikit-learn: 1,797 of 8 by 8 pixels, in 17 shades. Each task makes copies of
those to train on, with noise; the others, without, test the model.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
import xgboost as xgb
from distributed import Client, wait
from sklearn.datasets import load_digits
from xgboost import dask as dxgb

from program import Row, Settings, main

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.float32]]

SEED = 8
PIXELS = 64
TRAINING = 1_500  # images; the others are for the test

#: Chunks, copies of the images in each of them, and rounds of boosting.
SHAPES = {"small": (8, 4, 10), "full": (16, 25, 60)}

PARAMETERS = {
    "objective": "multi:softprob",
    "num_class": 10,
    "tree_method": "hist",
    "max_depth": 5,
    "min_child_weight": 5,
    # More bins than shades: where the rows lie, on which worker, then makes no difference.
    "max_bin": 64,
    "seed": SEED,
}


def run(settings: Settings) -> list[Row]:
    """The table of confusions as rows: digit, what it was taken for, how often."""
    client = Client.current()
    chunks, copies, rounds = SHAPES[settings.size]
    images, digits = client.persist(training_set(chunks, copies))
    wait([images, digits])
    data = dxgb.DaskQuantileDMatrix(client, images, digits, max_bin=PARAMETERS["max_bin"])
    booster = dxgb.train(client, PARAMETERS, data, num_boost_round=rounds)["booster"]
    return confusions(booster)


def training_set(chunks: int, copies: int) -> tuple[da.Array, da.Array]:
    """Images, one in a row, and the digits they show."""
    rows = (copies * TRAINING,) * chunks
    images = da.map_blocks(
        noisy, copies, chunks=(rows, (PIXELS,)), dtype="float32", meta=np.empty((0, 0), "float32")
    )
    digits = da.map_blocks(
        labels, copies, chunks=(rows,), dtype="float32", meta=np.empty(0, "float32")
    )
    return images, digits


def noisy(copies: int, block_id: tuple[int, ...]) -> Numbers:
    """Copies of the training images, each pixel up to two shades off."""
    images = np.tile(load_digits().data[:TRAINING], (copies, 1))
    noise = np.random.default_rng([SEED, *block_id]).integers(-2, 3, images.shape)
    return (images + noise).astype("float32")


def labels(copies: int) -> Numbers:
    """The digits on as many copies."""
    return np.tile(load_digits().target[:TRAINING], copies).astype("float32")


def confusions(booster: xgb.Booster) -> list[Row]:
    """What the model takes the test images for."""
    images, digits = load_digits(return_X_y=True)
    guesses = booster.predict(xgb.DMatrix(images[TRAINING:])).argmax(axis=1)
    pairs, counts = np.unique([digits[TRAINING:], guesses], axis=1, return_counts=True)
    return [(*map(int, pair), int(n)) for pair, n in zip(pairs.T, counts, strict=True)]


if __name__ == "__main__":
    why = "xgboost.dask needs a distributed client"
    sys.exit(main("boosting", __doc__, run, only_distributed=why))
