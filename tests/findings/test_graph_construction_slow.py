"""Rule graph-construction-slow: A5 (code that builds graphs), A3, A4."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import clusters
from findings.asking import asked, one, run
from findings.crowded import CLIENT, FILE, WORKER, Program, calls, pieces
from replay.handmade import HandMade, ns
from stageprof_collectors.findings.calling import FUTURES_KEY
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import tiny_tasks
from stageprof_collectors.rules.graph_construction_slow import RULE
from stageprof_runtime.event import FLAME, NODE, STACK
from stageprof_runtime.stage import STEP

FRAME, ARRAY = "pandas.core.frame.DataFrame", "numpy.ndarray"


def program(
    step: str = "meta", ms: float = 500.0, *, type_: str = FRAME, name: str = "ranked"
) -> Recording:
    """A second of work after so much building at line 39."""
    made = Program()
    made.made(name, 39)
    made.client(f"construction/{step}", ms, f"{FILE}:39", seen=True)
    made.tasks(pieces(10, name), work=99.0, type_=type_)
    return made.recording()


def test_of_a_recording_that_took_no_time_there_is_nothing_to_say() -> None:
    """One that was broken off with its first batch; the rule failed."""
    assert asked(RULE, HandMade().recording(0)) == []


@pytest.mark.parametrize("step", ["meta", "tokenize", "build"])
def test_line_and_what_took_the_time_there_are_named(step: str) -> None:
    """A5: construction is told apart, by line."""
    found = one(RULE, program(step))

    assert "`ranked`" in found.headline
    assert "etl.py:39" in found.headline
    assert "500 ms of 1.50 s" in found.headline
    assert found.evidence[f"{step}_s"] == pytest.approx(0.5)
    assert found.cost_s == pytest.approx(0.5)
    assert found.cause == f"built:{FILE}:39"
    # How many operations can become one nobody knows.
    assert found.saving_s == pytest.approx((0.0 if step == "build" else 0.5, 0.5))


@pytest.mark.parametrize(("ms", "fires"), [(54.0, True), (51.0, False), (0.0, False)])
def test_it_fires_from_a_twentieth_of_the_run(ms: float, fires: bool) -> None:
    assert bool(asked(RULE, program(ms=ms))) == fires


def test_lines_that_cost_little_each_are_one_finding() -> None:
    made = Program()
    for line in range(10):
        made.client("construction/meta", 30.0 + line, f"{FILE}:{line + 1}", seen=True)
    made.tasks(pieces(10), work=99.0)
    assert one(RULE, made.recording()).where.line == 10


def test_building_many_tasks_has_the_cause_of_their_number() -> None:
    made = Program()
    made.made("checked", 21)
    made.client("construction/build", 300.0, f"{FILE}:21", seen=True)
    made.tasks(calls(600), work=0.1)
    recording = made.recording()
    assert one(RULE, recording).cause == one(tiny_tasks.RULE, recording).cause


@pytest.mark.parametrize(("graphs", "handed"), [(20, True), (19, False)])
def test_calls_that_are_handed_over_one_by_one_are_no_collection(graphs: int, handed: bool) -> None:
    made = Program()
    made.made("fetch", 99)
    for i in range(graphs):
        made.client("construction/build", 20.0, f"{FILE}:99", seen=True)
        made.tasks([f"fetch-{i}"], work=30.0)
    found = one(RULE, made.recording())
    assert ("Dask handed `fetch` over in 20 graphs, etl.py:99: 400 ms" in found.headline) == handed
    assert (".map(fetch, inputs)" in found.fix.code) == handed


def test_a_line_that_builds_slowly_may_hold_a_loop_that_is_slow_too() -> None:
    """A function without a name is at the line of the call that takes it."""
    made = Program()
    made.made("ranked", 39)
    made.client("construction/meta", 500.0, f"{FILE}:39", seen=True)
    made.tasks(pieces(10, "ranked"), work=99.0)
    label = f"{FILE}:39 <lambda>"
    made.rows[WORKER].append((STACK, ns(1), "ranked", label, "Series.map", "f", 20, 10**9))
    found = made.recording().findings()
    assert {each.rule for each in found} >= {"graph-construction-slow", "row-loop"}


def test_lines_none_of_whose_layers_ran_are_told_of_too() -> None:
    """They became part of others, or were never computed."""
    made = Program()
    for line in (39, 40, 41):
        made.made(f"ranked-{line}", line)
        made.client("construction/meta", 300.0 + line, f"{FILE}:{line}", seen=True)
    made.tasks(pieces(10, "ranked-39"), work=99.0)
    lines = {found.where.line for found in asked(RULE, made.recording())}
    assert lines == {39, 40, 41}


@pytest.mark.parametrize(
    ("step", "said"),
    [("tokenize", "names for `frompandas`"), ("build", "copied what `frompandas` was made from")],
)
def test_what_is_made_of_data_in_memory_is_no_function_to_call(step: str, said: str) -> None:
    """Dask calls the layer so; what ran is called by what else was in the line."""
    made = Program()
    made.made("frompandas-1a2b", 39)
    made.made("ranked", 39)
    made.client(f"construction/{step}", 500.0, f"{FILE}:39", seen=True)
    made.tasks(pieces(10, "ranked"), work=99.0, type_=FRAME)
    found = one(RULE, made.recording())
    assert said in found.headline
    assert "read_parquet" in found.fix.text
    assert found.fix.code == ""


@pytest.mark.parametrize(("line", "divides"), [(39, True), (40, False)])
def test_an_index_that_is_divided_is_no_operation_to_join_with_others(
    line: int, divides: bool
) -> None:
    """Whoever first asks for the partitions of a frame pays for it: a join, a rolling mean."""
    made = Program()
    made.client("construction/build", 500.0, f"{FILE}:39", seen=True)
    frames = [("main", FILE, line), ("sorted_division_locations", "dask/dataframe/io/io.py", 256)]
    rows = made.rows[CLIENT]
    rows += [(NODE, i, i - 1, *frame) for i, frame in enumerate(frames)]
    rows.append((FLAME, ns(1), STEP["build"], "", "python", 1, 10, 500_000_000))
    made.tasks(pieces(10), work=99.0)
    found = one(RULE, made.recording())
    assert ("went through the index of a pandas frame" in found.headline) == divides
    assert ("object of each value of the frame's index" in found.fix.text) == divides
    assert bool(found.fix.code) != divides


@pytest.mark.parametrize("step", ["meta", "tokenize", "build"])
def test_no_code_is_printed_where_nobody_says_what_the_pieces_are(step: str) -> None:
    """Local schedulers do not tell; code for a single call would change what comes back."""
    found = one(RULE, program(step, type_=""))
    assert found.evidence["collection"] == "pieces"
    assert found.fix.code == ""


def ranked(piece: pd.DataFrame) -> pd.DataFrame:
    return piece.assign(rank=piece["x"].rank())


def doubled(piece: np.ndarray) -> np.ndarray:
    return piece * 2


def test_printed_meta_of_a_data_frame_is_what_the_function_returns() -> None:
    ddf = dd.from_pandas(pd.DataFrame({"x": [3.0, 1.0, 2.0]}), npartitions=1)
    names = run(one(RULE, program()), ddf=ddf, ranked=ranked)
    assert names["ddf"].compute(scheduler="sync")["rank"].tolist() == [3, 1, 2]


def test_printed_meta_of_an_array_keeps_the_function_from_being_called() -> None:
    called = []

    def ranked_array(piece: np.ndarray) -> np.ndarray:
        called.append(piece)
        return piece * 2

    found = one(RULE, program(type_=ARRAY))
    names = run(found, x=da.ones(4, chunks=2), ranked=ranked_array)
    assert not called
    assert names["x"].compute(scheduler="sync").tolist() == [2.0] * 4


def test_printed_names_keep_dask_from_reading_the_data() -> None:
    data = np.arange(6)
    array = run(one(RULE, program("tokenize", type_=ARRAY, name="array")), data=data)["x"]
    assert array.sum().compute(scheduler="sync") == 15
    call = run(one(RULE, program("tokenize", type_="int")), data=data, ranked=np.sum)["result"]
    assert call.compute(scheduler="sync") == 15


def test_names_of_what_is_submitted_are_to_be_random() -> None:
    """What is made of arrays by `client.submit` is no collection to map a function over."""
    made = Program()
    made.made("ranked", 39)
    made.client("construction/tokenize", 500, f"{FILE}:39", seen=True)
    made.tasks([f"ranked-{i:032x}" for i in range(10)], work=99.0, type_=ARRAY)
    found = one(RULE, made.recording())

    with clusters.inside() as client:
        future = run(found, client=client, ranked=lambda x: x + 1, args=(1,))["future"]
        assert future.result() == 2
        assert not FUTURES_KEY.fullmatch(future.key)


class Table:
    """An argument that counts how often it is read to make a name."""

    reads = 0

    def __dask_tokenize__(self) -> str:
        Table.reads += 1
        return "table"


@pytest.mark.parametrize("type_", [ARRAY, FRAME])
def test_printed_wrapping_keeps_dask_from_reading_an_argument(type_: str) -> None:
    def took(piece: Any, table: Table) -> Any:
        assert type(table) is Table
        return piece * 2

    x, ddf = da.ones(4, chunks=2), dd.from_pandas(pd.DataFrame({"x": [3.0, 1.0]}), npartitions=1)
    Table.reads = 0
    found = one(RULE, program("tokenize", type_=type_))
    names = run(found, x=x, ddf=ddf, ranked=took, table=Table())
    if type_ == ARRAY:
        assert names["x"].sum().compute(scheduler="sync") == 8
    else:
        assert names["ddf"]["x"].compute(scheduler="sync").tolist() == [6.0, 2.0]
    assert Table.reads == 0


@pytest.mark.parametrize("type_", [ARRAY, FRAME, "int"])
def test_printed_function_does_all_steps(type_: str) -> None:
    found = one(RULE, program("build", type_=type_))
    ddf = dd.from_pandas(pd.DataFrame({"x": [1.0, 2.0]}), npartitions=1)
    given = {"x": da.ones(2, chunks=1), "ddf": ddf, "start": 1.0}
    names = run(found, steps=[doubled, doubled], **given)
    name = {ARRAY: "x", FRAME: "ddf", "int": "result"}[type_]
    total = np.sum(names[name].compute(scheduler="sync"))
    assert float(np.sum(total)) == {ARRAY: 8.0, FRAME: 12.0, "int": 4.0}[type_]
