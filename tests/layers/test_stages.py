"""Of two lines the planted one gets its cost in each of the six stages, the innocent one none."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.dataframe.dask_expr._collection import new_collection
from dask.dataframe.dask_expr._expr import Elemwise
from distributed import Client, wait

import planted
from marked import LEAST, NOISE, is_blamed, line_of, read, sums_to_the_stages
from truth import record

DELAY = 0.5


class SlowRewrite(Elemwise):
    """An expression that is slow to simplify, once."""

    _parameters = ["frame", "log", "seconds"]  # noqa: RUF012 (as Dask's own expressions do)
    _defaults = {"log": "", "seconds": 0.0}  # noqa: RUF012
    operation = staticmethod(lambda frame, *_: frame + 1)

    @property
    def _meta(self) -> Any:
        return self.frame._meta

    def _simplify_down(self) -> None:
        if self.log:
            planted.timed_sleep(self.log, "rewrite", self.seconds)


# -- programs: two lines each -----------------------------------------------------------------


def slow_meta(log: str, delay: float) -> None:
    """Meta inference of an array's function."""
    x = da.ones((8, 8), chunks=4)
    a = x.map_blocks(planted.meta_slow, log, delay)  # <- planted
    b = x.map_blocks(planted.identity, 2, dtype=x.dtype)  # <- innocent
    dask.compute(a.sum(), b.sum())


def slow_optimizer(log: str, delay: float) -> None:
    """A collection with an optimizer of its own, beside an array."""
    b = (da.ones((40, 40), chunks=10) + 1).sum()  # <- innocent
    dask.compute(planted.SlowGraph(log, delay), b)  # <- planted


def slow_rewrite(log: str, delay: float) -> None:
    """Two frames optimized together, one of which holds a slow expression."""
    pdf = pd.DataFrame({"x": range(20), "y": range(20)})
    ddf = dd.from_pandas(pdf, npartitions=2)
    rewritten: Any = SlowRewrite
    a = new_collection(rewritten(ddf.expr, log, delay))  # <- planted
    b = ddf.y.sum()  # <- innocent
    dask.compute(a, b)


def slow_pickle(log: str, delay: float) -> None:
    """An object that is slow to dump and to load at each of four hops."""
    b = [dask.delayed(planted.ignore)(i) for i in range(200)]  # <- innocent
    a = dask.delayed(planted.ignore)(planted.Slow(log, delay, delay))  # <- planted
    dask.compute(a, *b)


def slow_result(log: str, delay: float) -> None:
    """A result that is slow to bring home, beside many that are not."""
    b = [dask.delayed(planted.ignore)(i) for i in range(200)]  # <- innocent
    a = dask.delayed(planted.make_slow)(log, delay, delay)  # <- planted
    dask.compute(a, *b)


def slow_bag(log: str, delay: float) -> None:
    """A bag with a slow function beside one without."""
    numbers = db.from_sequence(range(4), npartitions=4)
    a = numbers.map(lambda _: planted.work(log, delay))  # <- planted
    b = numbers.map(lambda n: n + 1)  # <- innocent
    dask.compute(a, b, optimize_graph=False)


# -- construction -----------------------------------------------------------------------------


def test_slow_meta_inference_is_its_lines_on_a_cluster(cluster: Client, tmp_path: Path) -> None:
    """Construction of an array."""
    is_blamed(read(slow_meta, DELAY, tmp_path), "construction")


def test_slow_meta_inference_is_its_lines_on_threads(tmp_path: Path) -> None:
    """The same without a cluster."""
    with dask.config.set(scheduler="threads"):
        reading = read(slow_meta, DELAY, tmp_path)
    is_blamed(reading, "construction")
    assert reading.cost("planted", "wall_s") >= LEAST * reading.seconds() - NOISE
    assert reading.cost("planted", "before_first_task_s") >= LEAST * reading.seconds() - NOISE


def many_calls(client: object, spent: list[float]) -> None:
    """A loop of delayed calls beside another."""
    b = [dask.delayed(planted.ignore)(i) for i in range(200)]  # <- innocent
    started = time.perf_counter()
    a = [dask.delayed(planted.identity)(i) for i in range(20_000)]  # <- planted
    spent.append(time.perf_counter() - started)
    dask.compute(a[0], *b, scheduler=client)


def test_twenty_thousand_calls_are_construction_of_their_line(cluster: Client) -> None:
    """Though all but one of them never run."""
    spent: list[float] = []
    recording = record(lambda: many_calls(cluster, spent))
    table = recording.lines().set_index("line")
    found = float(table["construction_s"][line_of(many_calls, "planted")])
    assert found == pytest.approx(spent[0], rel=0.1, abs=NOISE)
    assert float(table["construction_s"][line_of(many_calls, "innocent")]) <= 0.1 * found + NOISE


# -- optimization -----------------------------------------------------------------------------


def test_a_slow_optimizer_is_its_collections_on_a_cluster(cluster: Client, tmp_path: Path) -> None:
    """The collection's line gets what its own optimizer takes on the scheduler."""
    is_blamed(read(slow_optimizer, DELAY, tmp_path), "optimization")


def test_a_slow_optimizer_is_its_collections_on_threads(tmp_path: Path) -> None:
    """And on the client."""
    with dask.config.set(scheduler="threads"):
        reading = read(slow_optimizer, DELAY, tmp_path)
    is_blamed(reading, "optimization")


def test_a_slow_rewrite_is_its_expressions_on_a_cluster(cluster: Client, tmp_path: Path) -> None:
    """The line that made the expression gets what rewriting it takes."""
    is_blamed(read(slow_rewrite, DELAY, tmp_path), "optimization")


def test_a_slow_rewrite_is_its_expressions_on_threads(tmp_path: Path) -> None:
    """The same without a cluster."""
    with dask.config.set(scheduler="threads"):
        is_blamed(read(slow_rewrite, DELAY, tmp_path), "optimization")


# -- serialization ----------------------------------------------------------------------------


def test_a_slow_object_is_its_lines_at_each_hop(cluster: Client, tmp_path: Path) -> None:
    """Client, scheduler, scheduler, worker: four hops, one line."""
    is_blamed(read(slow_pickle, DELAY, tmp_path), "serialization")


def test_a_slow_object_is_its_lines_on_processes(tmp_path: Path) -> None:
    """Between the client and processes of its own."""
    with dask.config.set(scheduler="processes", num_workers=1):
        is_blamed(read(slow_pickle, DELAY, tmp_path), "serialization")


def test_a_slow_result_is_the_line_that_made_it(cluster: Client, tmp_path: Path) -> None:
    """Dumped at the worker, loaded at the client."""
    is_blamed(read(slow_result, DELAY, tmp_path), "serialization")


# -- execution --------------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["threads", "cluster"])
def test_a_slow_function_is_its_lines(scheduler: str, cluster: Client, tmp_path: Path) -> None:
    """Execution of a bag."""
    with dask.config.set(scheduler=cluster if scheduler == "cluster" else scheduler):
        is_blamed(read(slow_bag, DELAY, tmp_path), "execution")


# -- communication ----------------------------------------------------------------------------


def fetch(client: Client, nbytes: int) -> None:
    """A big and a small result that the other worker needs."""
    first, second = list(client.scheduler_info()["workers"])
    small = client.submit(planted.blob, 1000, workers=first, pure=False)
    big = client.submit(planted.blob, nbytes, workers=first, pure=False)
    b = client.submit(planted.size, small, workers=second, pure=False)  # <- innocent
    assert b.result() == 1000
    a = client.submit(planted.size, big, workers=second, pure=False)  # <- planted
    assert a.result() == nbytes


def test_a_big_dependency_is_the_line_that_fetched_it(cluster: Client) -> None:
    """Its transfer is communication of the task that needed it, by future."""
    fetch(cluster, 1000)
    table = record(lambda: fetch(cluster, 200_000_000)).lines().set_index("line")
    moved = table["communication_s"]
    planted_s = float(moved[line_of(fetch, "planted")])
    assert planted_s >= LEAST * float(moved.sum()) - 0.01, table.to_string()


# -- scheduling -------------------------------------------------------------------------------


def crowd(_log: str, _delay: float) -> None:
    """A line that makes many tasks beside one that makes few."""
    x, y, meta = da.ones(10_000, chunks=1), da.zeros(100, chunks=1), np.ones(1)
    a = x.map_blocks(planted.identity, meta=meta)  # <- planted
    b = y.map_blocks(planted.identity, meta=meta)  # <- innocent
    wait(dask.persist(a, b))


def crowded() -> None:
    """The line with 10,000 tasks has a hundred times the scheduling of the one with 100."""
    recording = record(lambda: crowd("", 0))
    sums_to_the_stages(recording)
    table = recording.lines().set_index("line")["scheduling_s"]
    many, few = (float(table.get(line_of(crowd, m), 0.0)) for m in ("planted", "innocent"))
    assert many >= LEAST * float(table.sum()), table.to_string()
    assert few <= (1 - LEAST) * float(table.sum()), table.to_string()


def test_many_tasks_are_scheduling_of_their_line_on_threads() -> None:
    """Order, state and loop of a local scheduler."""
    with dask.config.set(scheduler="threads"):
        crowded()


@pytest.mark.nightly
def test_many_tasks_are_scheduling_of_their_line_on_a_cluster(cluster: Client) -> None:
    """Order, state and transitions of the scheduler."""
    with cluster.as_current():
        crowded()
