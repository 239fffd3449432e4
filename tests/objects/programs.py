"""Small programs that put an object of theirs into a graph, each in another way.

The line that made the object is marked `# <- here`; what the object is called there is said by
`planted`. Each program returns what it computed, which must not depend on being watched.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
from distributed import Client

import planted as slow

Program = Callable[[Client, str], Any]


class Planted(NamedTuple):
    """A program, what its object is called, of which type, and how many bytes it has."""

    program: Program
    variable: str
    type: str
    #: exact bytes; 0 where they depend on pickling
    nbytes: int

    @property
    def line(self) -> int:
        """The line that is marked."""
        lines, first = inspect.getsourcelines(self.program)
        marked = [first + i for i, line in enumerate(lines) if "# <- here" in line]
        if marked:
            return marked[0]
        module = inspect.getsource(inspect.getmodule(self.program) or slow).splitlines()
        mark = f"# <- {self.program.__name__}"
        return next(i for i, line in enumerate(module, 1) if line.endswith(mark))


cases: list[Planted] = []


def planted(variable: str, kind: str, nbytes: int = 0) -> Callable[[Program], Program]:
    """A program that plants one object."""

    def add(program: Program) -> Program:
        cases.append(Planted(program, variable, kind, nbytes))
        return program

    return add


LOOKUP = np.arange(40_000.0)  # <- global_argument
RATES = np.arange(30_000.0)  # <- global_of_a_lambda

ARRAY = "numpy.ndarray"
FRAME = "pandas.DataFrame"


def numbers() -> Any:
    """A collection that embeds nothing to speak of."""
    return dd.from_pandas(pd.DataFrame({"x": np.arange(100.0)}), npartitions=2)


def blocks() -> Any:
    """The same as an array."""
    return da.ones(8, chunks=4)


def first(x: Any, *args: Any, **kwargs: Any) -> Any:
    """What most programs here call."""
    return x


def total(x: Any, **kwargs: Any) -> float:
    """The sum of what it is given."""
    return float(np.sum(x))


class Model:
    """Something trained."""

    def __init__(self, seed: int) -> None:
        self.weights = np.full(30_000, float(seed))

    def predict(self, x: float) -> float:
        """Use it."""
        return float(x * self.weights[0])


class Config:
    """Something with a large attribute."""

    def __init__(self) -> None:
        self.name = "config"


class Job:
    """A program as a class."""

    def __init__(self) -> None:
        self.table = np.arange(50_000.0)  # <- attribute_of_self

    def run(self) -> Any:
        """Compute."""
        return numbers().map_partitions(first, self.table).sum().compute()


@planted("LOOKUP", ARRAY, 320_000)
def global_argument(client: Client, log: str) -> Any:
    return dask.delayed(total)(LOOKUP).compute()


@planted("table", ARRAY, 400_000)
def local(client: Client, log: str) -> Any:
    x = blocks()
    table = np.arange(50_000.0)  # <- here
    return x.map_blocks(first, table).sum().compute()


def build() -> Any:
    """A helper that returns before anything is computed."""
    lookup = np.arange(45_000.0)  # <- local_of_a_helper
    return numbers().map_partitions(first, table=lookup)


@planted("lookup", ARRAY, 360_000)
def local_of_a_helper(client: Client, log: str) -> Any:
    return build().sum().compute()


def make_scale() -> Callable[[Any], Any]:
    """A function that carries an array."""
    factors = np.arange(35_000.0)  # <- closure

    def scale(x: Any) -> Any:
        return x * factors[1]

    return scale


@planted("factors", ARRAY, 280_000)
def closure(client: Client, log: str) -> Any:
    scale = make_scale()
    return dask.delayed(scale)(2.0).compute()


@planted("known", ARRAY, 240_000)
def default_argument(client: Client, log: str) -> Any:
    known = np.arange(30_000.0)  # <- here

    def score(x: float, table: Any = known) -> float:
        return float(x + table[3])

    return client.submit(score, 1.0).result()


@planted("base", ARRAY, 200_000)
def partial(client: Client, log: str) -> Any:
    base = np.arange(25_000.0)  # <- here
    return client.submit(functools.partial(total, base)).result()


@planted("model", "objects.programs.Model", 240_000)
def method_of_an_object(client: Client, log: str) -> Any:
    model = Model(3)  # <- here
    return client.submit(model.predict, 2.0).result()


@planted("config.table", FRAME)
def attribute(client: Client, log: str) -> Any:
    config = Config()
    config.table = pd.DataFrame({"x": np.arange(40_000.0)})  # type: ignore[attr-defined] # <- here
    return dask.delayed(len)(config.table).compute()  # type: ignore[attr-defined]


@planted("self.table", ARRAY, 400_000)
def attribute_of_self(client: Client, log: str) -> Any:
    return Job().run().sum()


@planted("models[2]", "objects.programs.Model", 240_000)
def element_of_a_list(client: Client, log: str) -> Any:
    models = [Model(i) for i in range(3)]  # <- here
    return dask.delayed(Model.predict)(models[2], 2.0).compute()


@planted("tables['b']", ARRAY, 320_000)
def element_of_a_dict(client: Client, log: str) -> Any:
    tables = {"a": np.arange(3.0), "b": np.arange(40_000.0)}  # <- here
    return dask.delayed(total)(tables["b"]).compute()


@planted("weights", ARRAY, 400_000)
def keyword_of_map_blocks(client: Client, log: str) -> Any:
    weights = np.ones(50_000)  # <- here
    x = blocks()
    return x.map_blocks(first, weights=weights, dtype=float).sum().compute()


@planted("kernel", ARRAY, 1_600_000)
def large_keyword_of_map_blocks(client: Client, log: str) -> Any:
    kernel = np.ones(200_000)  # <- here
    return blocks().map_blocks(first, kernel=kernel, dtype=float).sum().compute()


@planted("lookup", FRAME)
def keyword_of_map_partitions(client: Client, log: str) -> Any:
    lookup = pd.DataFrame({"k": np.arange(50_000)})  # <- here
    return numbers().map_partitions(first, lookup=lookup).sum().compute()


@planted("prices", ARRAY, 240_000)
def keyword_of_apply(client: Client, log: str) -> Any:
    prices = np.arange(30_000.0)  # <- here
    return numbers().apply(first, axis=1, prices=prices, meta={"x": float}).sum().compute()


@planted("image", ARRAY, 800_000)
def argument_of_delayed(client: Client, log: str) -> Any:
    image = np.zeros((1000, 100))  # <- here
    parts = [dask.delayed(first)(i, image) for i in range(5)]
    return dask.compute(*parts)


@planted("payload", ARRAY, 400_000)
def argument_of_submit(client: Client, log: str) -> Any:
    payload = np.arange(50_000.0)  # <- here
    return client.submit(total, payload).result()


@planted("grid", ARRAY, 400_000)
def argument_of_map(client: Client, log: str) -> Any:
    grid = np.arange(50_000.0)  # <- here
    return client.gather(client.map(first, range(4), [grid] * 4))


@planted("pdf", FRAME)
def from_pandas(client: Client, log: str) -> Any:
    pdf = pd.DataFrame({"x": np.arange(50_000.0), "y": np.arange(50_000.0)})  # <- here
    return dd.from_pandas(pdf, npartitions=3).sum().compute()


@planted("measured", ARRAY, 800_000)
def from_array(client: Client, log: str) -> Any:
    measured = np.arange(100_000.0)  # <- here
    return da.from_array(measured, chunks=10_000).mean().compute()


@planted("lines", "list")
def from_sequence(client: Client, log: str) -> Any:
    lines = [f"line number {i} of a long text" for i in range(10_000)]  # <- here
    return db.from_sequence(lines, npartitions=4).map(len).sum().compute()


@planted("right", FRAME)
def merge(client: Client, log: str) -> Any:
    right = pd.DataFrame({"x": np.arange(30_000.0), "z": np.arange(30_000.0)})  # <- here
    return numbers().merge(right, on="x").z.sum().compute()


@planted("frame", FRAME)
def delayed_object(client: Client, log: str) -> Any:
    frame = pd.DataFrame({"x": np.arange(40_000.0)})  # <- here
    shared = dask.delayed(frame)
    return dask.compute(*[dask.delayed(first)(i, shared) for i in range(3)])


@planted("words", "dict")
def after_another_result(client: Client, log: str) -> Any:
    words = {i: f"word {i}" for i in range(20_000)}  # <- here
    other = dask.delayed(abs)(-1)
    return dask.delayed(first)(other, words).compute()


@planted("words", "dict")
def after_a_list_of_results(client: Client, log: str) -> Any:
    words = {i: f"word {i}" for i in range(20_000)}  # <- here
    other = dask.delayed(abs)(-1)
    return dask.delayed(first)([other, [1, other]], words).compute()


@planted("index", "dict")
def dict_of_objects(client: Client, log: str) -> Any:
    index = {f"key {i}": (i, float(i), str(i)) for i in range(8_000)}  # <- here
    return dask.delayed(len)(index).compute()


@planted("blob", "bytes", 300_000)
def bytes_argument(client: Client, log: str) -> Any:
    blob = bytes(300_000)  # <- here
    return client.submit(len, blob).result()


@planted("thing", "planted.Slow")
def slow_to_pickle(client: Client, log: str) -> Any:
    thing = slow.Slow(log, 0.03, 0.03)  # <- here
    return dask.delayed(slow.ignore)(thing).compute()


@planted("RATES", ARRAY, 240_000)
def global_of_a_lambda(client: Client, log: str) -> Any:
    return dask.delayed(lambda i: float(RATES[i]))(7).compute()


@planted("table", "pyarrow.Table")
def slices_that_drag_their_parent(client: Client, log: str) -> Any:
    table = pa.table({"x": np.arange(60_000.0)})  # <- here
    pieces = [table.slice(i * 10, 10) for i in range(4)]
    return dask.compute(*[dask.delayed(len)(piece) for piece in pieces])


@planted("shared", ARRAY, 400_000)
def the_same_under_several_layers(client: Client, log: str) -> Any:
    shared = np.arange(50_000.0)  # <- here
    x = blocks().map_blocks(first, shared)
    y = dask.delayed(total)(shared)
    return [float(part) for part in dask.compute(x.sum(), y)]


@planted("table", ARRAY, 400_000)
def passed_to_a_function_of_the_users(client: Client, log: str) -> Any:
    table = np.arange(50_000.0)  # <- here
    return _apply(numbers(), table)


def _apply(ddf: Any, lookup: Any) -> Any:
    return ddf.map_partitions(first, lookup).sum().compute()


@planted("weights", ARRAY, 400_000)
def assigned_in_a_loop(client: Client, log: str) -> Any:
    weights: Any = None
    for i in range(3):
        weights = np.full(50_000, i)  # <- here
    return dask.delayed(total)(weights).compute()


# -- clean programs: nothing of theirs is worth telling of ---------------------------------------

clean: list[Program] = []


def tidy(program: Program) -> Program:
    """A program that embeds nothing."""
    clean.append(program)
    return program


@tidy
def array_reduction(client: Client, log: str) -> Any:
    return da.ones((400, 400), chunks=(50, 50)).sum().compute()


@tidy
def array_rechunk(client: Client, log: str) -> Any:
    return da.ones((200, 200), chunks=(50, 50)).rechunk((200, 20)).T.mean().compute()


@tidy
def timeseries(client: Client, log: str) -> Any:
    return dask.datasets.timeseries(end="2000-01-05").x.mean().compute()


@tidy
def groupby(client: Client, log: str) -> Any:
    return dask.datasets.timeseries(end="2000-01-05").groupby("name").x.sum().compute()


@tidy
def bag_of_numbers(client: Client, log: str) -> Any:
    return db.range(1000, npartitions=5).map(lambda x: x + 1).sum().compute()


@tidy
def tree_of_delayed(client: Client, log: str) -> Any:
    parts = [dask.delayed(first)(i) for i in range(64)]
    return dask.delayed(sum)(parts).compute()


@tidy
def futures(client: Client, log: str) -> Any:
    return client.gather(client.map(first, range(200)))


@tidy
def loaded_in_a_task(client: Client, log: str) -> Any:
    table = dask.delayed(np.ones)(50_000)
    return numbers().map_partitions(first, table, meta={"x": float}).sum().compute()


@tidy
def scattered(client: Client, log: str) -> Any:
    table = client.scatter(np.ones(50_000))
    return client.submit(total, table).result()


@tidy
def many_small_objects(client: Client, log: str) -> Any:
    return dask.compute(*[dask.delayed(first)(i, Config(), name=f"n{i}") for i in range(1500)])
