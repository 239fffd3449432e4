"""N2: the same values under the same keys with and without stageprof, on every scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from dask.core import flatten
from dask.tokenize import tokenize
from distributed import Client, futures_of

import stageprof

#: Dask's own, where it is older than NumPy.
pytestmark = pytest.mark.filterwarnings("ignore:Passing more than 2 positional:DeprecationWarning")


def inc(x: int) -> int:
    return x + 1


def add(*xs: int) -> int:
    return sum(xs)


def array(*shape: int) -> Any:
    """The same numbers every time, in chunks."""
    numbers = np.arange(int(np.prod(shape)), dtype=float).reshape(shape)
    return da.from_array(numbers, chunks=tuple(max(1, n // 3) for n in shape))


def frame() -> Any:
    pdf = pd.DataFrame(
        {"k": [i % 5 for i in range(60)], "x": range(60), "s": [f"w{i % 7}" for i in range(60)]}
    )
    return dd.from_pandas(pdf, npartitions=3)


def bag() -> Any:
    return db.from_sequence([f"word{i % 9} other" for i in range(40)], npartitions=3)


def annotated() -> Any:
    with dask.annotate(priority=3, retries=1):
        return delayed(inc, pure=True)(7)


def tree() -> Any:
    """Delayed calls that are added up two by two."""
    level = [delayed(inc, pure=True)(i) for i in range(16)]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=True)
        level = [delayed(add, pure=True)(a, b) for a, b in pairs]
    return level[0]


@delayed(pure=True)  # type: ignore[untyped-decorator]
def sized(n: int, factor: int = 2) -> list[int]:
    return [i * factor for i in range(n)]


GRAPHS: dict[str, Callable[[], Any]] = {
    "array-sum": lambda: array(30, 30).sum(),
    "array-mean-axis": lambda: array(30, 20).mean(axis=0),
    "array-transpose": lambda: array(20, 20) + array(20, 20).T,
    "array-rechunk": lambda: array(30, 30).rechunk((30, 5)),
    "array-dot": lambda: array(12, 18).dot(array(18, 6)),
    "array-slice": lambda: array(40)[5:30:3],
    "array-where": lambda: da.where(array(40) > 7, array(40), 0),
    "array-map_blocks": lambda: da.map_blocks(np.sqrt, array(24)),
    "array-overlap": lambda: array(30).map_overlap(lambda x: x * 2, depth=1, boundary=0),
    "array-stack": lambda: da.stack([array(9), array(9)]),
    "array-random": lambda: da.random.default_rng(3).random((20, 20), chunks=10).std(),
    "frame-column": lambda: frame().x + 1,
    "frame-filter": lambda: frame()[frame().x > 20],
    "frame-groupby": lambda: frame().groupby("k").x.mean() * 2,
    "frame-merge": lambda: frame().merge(frame(), on="x"),
    "frame-sort": lambda: frame().sort_values("x", ascending=False).k,
    "frame-counts": lambda: frame().s.value_counts().sum(),
    "frame-apply": lambda: frame().map_partitions(len),
    "frame-describe": lambda: frame().x.describe() * 2,
    "bag-count": lambda: bag().count(),
    "bag-frequencies": lambda: bag().map(str.split).flatten().frequencies(),
    "bag-fold": lambda: bag().map(len).fold(add, initial=0),
    "bag-filter": lambda: bag().filter(lambda word: "3" in word),
    "bag-groupby": lambda: bag().map(len).distinct(),
    "delayed-one": lambda: delayed(inc, pure=True)(1),
    "delayed-tree": tree,
    "delayed-kwargs": lambda: sized(5, factor=3),
    "delayed-nested": lambda: delayed(add, pure=True)(*[sized(3)[i] for i in range(3)]),
    "delayed-annotated": annotated,
    "delayed-of-array": lambda: delayed(np.sum, pure=True)(array(30)),
}


def run(make: Callable[[], Any]) -> tuple[list[str], str]:
    """Keys of a collection, and a hash of its value."""
    collection = make()
    keys = [str(key) for key in flatten([collection.__dask_keys__()])]
    (value,) = dask.compute(collection)
    return keys, _hash(value)


def _hash(value: Any) -> str:
    if isinstance(value, pd.DataFrame | pd.Series):
        # Without us too, the order of a shuffle's rows differs from run to run, and their numbers.
        numbered = value.index.name is None and value.index.dtype.kind == "i"
        rows = sorted(value.to_csv(index=not numbered).splitlines())
        return str(tokenize(rows, str(value.dtypes)))
    if isinstance(value, np.ndarray | np.generic):
        return str(tokenize(np.asarray(value).tobytes(), str(value.dtype), np.shape(value)))
    return repr(sorted(value, key=repr) if isinstance(value, list) else value)


def same(names: list[str]) -> None:
    plain = {name: run(GRAPHS[name]) for name in names}
    with stageprof.profile():
        watched = {name: run(GRAPHS[name]) for name in names}
    assert watched == plain


def test_there_are_thirty_of_every_kind() -> None:
    assert len(GRAPHS) == 30
    kinds = {name.partition("-")[0] for name in GRAPHS}
    assert kinds == {"array", "frame", "bag", "delayed"}


@pytest.mark.smoke
@pytest.mark.parametrize("scheduler", ["threads", "sync"])
def test_local_schedulers_give_the_same(scheduler: str) -> None:
    with dask.config.set(scheduler=scheduler):
        same(list(GRAPHS))


@pytest.mark.parametrize(
    "share", [pytest.param(15, id="some"), pytest.param(1, id="all", marks=pytest.mark.nightly)]
)
def test_the_scheduler_of_processes_gives_the_same(share: int) -> None:
    with dask.config.set({"scheduler": "processes", "num_workers": 2}):
        same(list(GRAPHS)[::share])


@pytest.mark.smoke
@pytest.mark.cluster
@pytest.mark.parametrize(
    "share", [pytest.param(4, id="some"), pytest.param(1, id="all", marks=pytest.mark.nightly)]
)
def test_a_cluster_gives_the_same(share: int, client: Client) -> None:
    same(list(GRAPHS)[::share])


#: What is done with futures: each gives futures, whose keys and values are compared.
FUTURES: dict[str, Callable[[Client], list[Any]]] = {
    "submit": lambda client: [client.submit(inc, 1)],
    "map": lambda client: client.map(inc, range(5)),
    "key": lambda client: [client.submit(add, client.submit(inc, 2), 3, key="mine")],
    "tuple-key": lambda client: [client.submit(inc, 4, key=("mine", 0, 1))],
    "tree": lambda client: [client.submit(add, *client.map(inc, range(9)))],
    "scatter": lambda client: [client.submit(inc, client.scatter(5))],
    "compute": lambda client: client.compute([tree(), array(30).sum()]),
    "persist": lambda client: list(futures_of(client.persist(array(30) + 1))),
    "nested": lambda client: [client.submit(len, {"a": client.map(inc, range(3))})],
    "retries": lambda client: client.map(inc, range(3), retries=2, priority=5),
}


@pytest.mark.cluster
def test_futures_have_the_same_keys_and_values(client: Client) -> None:
    """Keys of what is made of other futures are new each time, with or without stageprof."""

    def futures() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, make in FUTURES.items():
            made = make(client)
            found[name] = [f.key for f in made], [_hash(value) for value in client.gather(made)]
        return found

    first, plain = futures(), futures()
    with stageprof.profile():
        watched = futures()
    again = {name for name in FUTURES if first[name] == plain[name]}
    assert len(again) >= 6
    assert {name: watched[name] for name in again} == {name: plain[name] for name in again}
    assert [values for _, values in watched.values()] == [values for _, values in plain.values()]


def test_errors_and_their_texts_are_the_same() -> None:
    def fail() -> str:
        try:
            delayed(lambda x: x / 0)(1).compute(scheduler="threads")
        except ZeroDivisionError as error:
            return repr(error)
        return ""

    plain = fail()
    with stageprof.profile():
        assert fail() == plain != ""
