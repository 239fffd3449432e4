"""Every layer carries the user's line that made it, through optimization and fusion."""

from __future__ import annotations

from collections.abc import Callable

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client

from truth import record


def array() -> None:
    """Blockwise steps that low-level optimization fuses."""
    x = da.ones((40, 40), chunks=10)
    y = (x + 1) * 2
    y.T.sum(axis=0).compute()


def frame() -> None:
    """Expressions that are lowered and fused."""
    pdf = pd.DataFrame({"k": np.arange(100) % 5, "v": np.arange(100.0)})
    ddf = dd.from_pandas(pdf, npartitions=4)
    ddf = ddf.assign(w=ddf.v * 2)
    ddf.groupby("k").w.mean().compute()


def bag() -> None:
    """A bag, whose tasks are fused by key."""
    numbers = db.from_sequence(range(100), npartitions=4)
    numbers.map(str).filter(str.isdigit).count().compute()


def made_here(program: Callable[[], None]) -> float:
    """Share of a program's tasks whose layer is known to come from a line of this file."""
    layers = record(program).layers()
    first = program.__code__.co_firstlineno
    mine = (layers["file"] == __file__) & layers["line"].between(first, first + 8)
    return float(layers["tasks"][mine].sum() / layers["tasks"].sum())


def test_array_layers_on_a_cluster(cluster: Client) -> None:
    """Every task of a fused array computation is traced to its line."""
    assert made_here(array) == 1.0


def test_dataframe_layers_on_a_cluster(cluster: Client) -> None:
    """Tasks of lowered and fused expressions are traced to theirs."""
    assert made_here(frame) >= 0.9


def test_bag_layers_on_a_cluster(cluster: Client) -> None:
    """Tasks of a bag are traced to theirs."""
    assert made_here(bag) == 1.0


def test_lines_on_local_schedulers(local_scheduler: str) -> None:
    """The same without a cluster."""
    assert made_here(array) == 1.0
    assert made_here(frame) >= 0.9
