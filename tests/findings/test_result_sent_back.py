"""The rule result-sent-back: what is fetched and handed over again is known, and what it costs."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, futures_of

import stageprof
from findings.asking import asked, one, run
from findings.crowded import CLIENT, LANE, Program, ns
from stageprof_collectors.findings.diagnosis import diagnose
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.result_sent_back import RULE
from stageprof_runtime.event import BLOCK, FETCHED

MB = 1_000_000
TOKEN = "0" * 32
LOAD = f"load-{TOKEN}"
SCORE = f"score-{TOKEN}"


def there_and_back(*, nbytes: int = 100 * MB, back: bool = True, **fields: Any) -> Recording:
    """A result is fetched in 400 ms, named in 300 and sent to 5 tasks, each of 100 ms."""
    made = Program()
    made.made("load", 16)
    made.made("score", 18)
    made.tasks([LOAD], work=200.0, nbytes=nbytes)
    begun, made.now = made.now, made.now + 400.0
    row = (BLOCK, ns(begun), ns(made.now), LANE, "_gather", ns(begun), ns(begun), ns(made.now))
    made.rows[CLIENT].append((*row, LOAD))
    made.client("construction/tokenize", 300.0, "/home/u/etl.py:18")
    how = {"how": "argument 1 of client.map", "variable": "parts", "type": "list", "tasks": 5}
    made.embedded("score", **{"nbytes": nbytes, **how, **fields})
    if back:
        made.rows[CLIENT].append((FETCHED, 1, 1, LOAD))
    made.tasks([f"score-{i:032x}" for i in range(5)], work=10.0, lead=100.0)
    return made.recording()


def test_both_ways_and_the_reading_through_are_its_cost() -> None:
    found = one(RULE, there_and_back())

    assert found.headline.startswith(
        "Results of `load` at etl.py:16, 100 MB, are brought to the client and sent back at "
        "etl.py:18: "
    )
    assert (found.where.line, found.where.variable, found.where.prefix) == (18, "parts", "load")
    # 400 ms there, 300 of tokenizing; of the five messages of 100 ms what small ones do not take.
    assert found.cost_s == pytest.approx(0.4 + 0.3 + 5 * 0.095, rel=0.02)
    assert found.saving_s == pytest.approx((found.cost_s, found.cost_s), rel=0.05)


def test_what_others_say_of_the_same_is_not_told_besides() -> None:
    rules = [f.rule for f in diagnose(there_and_back())]
    assert "result-sent-back" in rules
    assert {"large-result", "embedded-object", "graph-construction-slow"}.isdisjoint(rules)


@pytest.mark.parametrize(
    ("program", "limits"),
    [({"back": False}, {}), ({"nbytes": 9 * MB}, {}), ({}, {"share": 0.9})],
)
def test_it_is_silent_of_what_stays_there_and_of_little(
    program: dict[str, Any], limits: dict[str, float]
) -> None:
    assert not asked(RULE, there_and_back(**program), **limits)


def test_a_result_that_was_fetched_before_the_region_is_an_embedded_object() -> None:
    """Nothing of its way to the client is in the region."""
    made = Program()
    made.embedded(SCORE, nbytes=100 * MB, tasks=1)
    made.rows[CLIENT].append((FETCHED, 1, 0, "gone-1"))
    made.tasks([SCORE], work=10.0, lead=500.0)
    assert not asked(RULE, made.recording())


# -- on a cluster, and what is printed -------------------------------------------------------------


def load(i: int) -> np.ndarray:
    return np.full(400_000, float(i))


def score(x: np.ndarray) -> float:
    return float(x.mean())


def _back(recording: Recording) -> Finding:
    """What is found whatever it costs: how long anything takes here is the machine's affair."""
    return one(RULE, recording, share=0.0)


@pytest.mark.smoke
@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore:Sending large graph")
def test_gathered_values_that_map_gets_are_found_and_the_printed_code_keeps_them_there(
    client: Client,
) -> None:
    with stageprof.profile() as region:
        parts = client.gather(client.map(load, range(8)))
        total = sum(client.gather(client.map(score, parts)))

    found = _back(region.recording)

    assert (found.where.variable, found.where.prefix) == ("parts", "load")
    futures = client.map(load, range(8))
    with stageprof.profile() as after:
        futures = run(found, futures=futures, score=score)["futures"]
        assert sum(client.gather(futures)) == total
    assert not asked(RULE, after.recording, share=0.0)


@pytest.mark.cluster
def test_values_one_by_one_are_one_finding(client: Client) -> None:
    with stageprof.profile() as region:
        futures = [client.submit(load, i) for i in range(8)]
        scores = []
        for future in futures:
            part = future.result()
            scores.append(client.submit(score, part))
        assert sum(client.gather(scores)) == 28

    assert _back(region.recording).where.variable == "part"


@pytest.mark.cluster
def test_gathered_values_that_are_scattered_are_found(client: Client) -> None:
    with stageprof.profile() as region:
        parts = client.gather(client.map(load, range(8)))
        there = client.scatter(parts)
        total = sum(client.gather(client.map(score, there)))

    found = _back(region.recording)

    assert (found.where.variable, found.where.prefix) == ("parts", "load")
    assert found.cost_s > 0
    futures = run(found, futures=client.map(load, range(8)), function=score)["futures"]
    assert sum(client.gather(futures)) == total


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore:Sending large graph")
def test_computed_values_that_delayed_calls_get_are_found(client: Client) -> None:
    lazy_load, lazy_score = dask.delayed(load), dask.delayed(score)
    with stageprof.profile() as region:
        values = dask.compute(*[lazy_load(i) for i in range(8)])
        total = sum(dask.compute(*[lazy_score(value) for value in values]))

    found = _back(region.recording)

    parts = run(found, parts=[lazy_load(i) for i in range(8)], score=score)["parts"]
    assert sum(dask.compute(*parts)) == total


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("kind", ["array", "xarray", "frame"])
def test_collections_made_of_what_was_computed_are_found(client: Client, kind: str) -> None:
    """Dask and xarray copy what they are given, and cut the copy."""
    with stageprof.profile() as region:
        x = da.random.default_rng(1).random((40, 50_000), chunks=(5, 50_000))
        whole: Any
        if kind == "array":
            whole = np.asarray(x.compute())
            again = da.from_array(whole, chunks=(5, 50_000))
        elif kind == "xarray":
            xr = pytest.importorskip("xarray")
            whole = xr.DataArray(x, dims=("t", "x")).compute()
            again = whole.chunk({"t": 5})
        else:
            first = next(_first)  # else a rerun has the expressions that there are
            whole = dd.from_map(_frame, range(first, first + 8)).compute()
            again = dd.from_pandas(whole, npartitions=8)
        again.sum().compute()

    found = _back(region.recording)

    assert found.where.variable == "whole"
    kept = run(found, x=x, ddf=dd.from_map(_frame, range(8)))["ddf" if kind == "frame" else "x"]
    assert len(futures_of(kept)) == 8


#: Numbers of frames that no other has.
_first = itertools.count(0, 8)


def _frame(i: int) -> pd.DataFrame:
    return pd.DataFrame({"a": np.arange(125_000) + float(i), "b": np.arange(125_000) * 2.0})


@pytest.mark.cluster
def test_a_client_in_a_coroutine_is_seen_too() -> None:
    async def program() -> Recording:
        async with Client(
            asynchronous=True, processes=False, n_workers=1, dashboard_address=":0"
        ) as client:
            async with stageprof.profile() as region:
                parts = await client.gather(client.map(load, range(8)))
                await client.gather([client.submit(score, part) for part in parts])
            return region.recording

    assert _back(asyncio.run(program())).where.prefix == "load"
