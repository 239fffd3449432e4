"""What is run bare and recorded: programs of `samples/` at full size, and tasks that do nothing.

The short ones take some seconds in memory and are there for what a recording costs in the worst
case: beginning and ending it, and tasks of some ms, weigh more in them.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask._task_spec import List, Task
from dask.delayed import Delayed

#: Computations one after another in a short workload: what is recorded is some seconds, or
#: beginning and ending a recording would be all that is measured.
REPEATED: Final = 3


def sample(name: str) -> Callable[[], None]:
    """A program of `samples/` at full size, its data made."""
    sys.path.insert(0, os.fspath(Path(__file__).parents[1] / "samples"))
    program, chosen = importlib.import_module("program"), importlib.import_module(name)
    settings = program.parsed(["--size", "full"], name)
    if name == "etl":
        importlib.import_module("make_data").make(settings)

    def run() -> None:
        with program.started(settings):
            chosen.run(settings)

    return run


def rechunk() -> Callable[[], None]:
    """The rechunk by tasks: by P2P every second run on a cluster is a quarter longer than others.

    Which ones depends on where P2P puts what comes out, and no tool is to be blamed for that.
    """
    run = sample("rechunk")

    def by_tasks() -> None:
        with dask.config.set({"array.rechunk.method": "tasks"}):
            run()

    return by_tasks


def short_array() -> None:
    """An array reduction with a rechunk: a few hundred tasks of some ms."""
    for seed in range(REPEATED):
        x = da.random.default_rng(seed).random((12000, 12000), chunks=(600, 12000))
        y = x.rechunk((12000, 600))
        ((y - y.mean(axis=0)) ** 2).sum().compute()


def make_frame(rows: int = 8_000_000) -> Callable[[], None]:
    """A groupby and a merge of a DataFrame in memory."""
    rng = np.random.default_rng(2)
    pdf = pd.DataFrame({"k": rng.integers(0, 1000, rows), "v": rng.random(rows)})
    small = pd.DataFrame({"k": np.arange(1000), "w": rng.random(1000)})

    def short_dataframe() -> None:
        for _ in range(REPEATED):
            ddf = dd.from_pandas(pdf, npartitions=48)
            merged = ddf.merge(small, on="k")
            merged.assign(z=merged.v * merged.w).groupby("k").z.agg(["mean", "std"]).compute()

    return short_dataframe


def nothing(x: int) -> int:
    """A task that does nothing."""
    return x


def no_ops(tasks: int = 20_000) -> None:
    """Tasks that do nothing, and one that waits for all: all cost is Dask's own."""
    graph: dict[Any, Task] = {("x", i): Task(("x", i), nothing, i) for i in range(tasks)}
    graph["end",] = Task(("end",), max, List(*(task.ref() for task in graph.values())))
    assert Delayed(("end",), graph).compute() == tasks - 1
