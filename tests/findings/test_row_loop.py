"""Rule row-loop: B5, B21, B22 (loops in Python), B32."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from findings.asking import asked, one, run
from findings.busy import FILE, Busy
from replay.handmade import ns
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.row_loop import RULE
from stageprof_runtime.event import FLAME, NODE
from stageprof_runtime.stage import STEP


def program(
    how: str = "iterrows", loops: int = 80, others: int = 20, function: str = "owed"
) -> Recording:
    """Ten tasks of 500 ms; 100 looks at them."""
    busy = Busy()
    busy.tasks("owed", 10, 500)
    busy.look("owed", 31, function, how, loops)
    busy.look("owed", 35, function, "library", others)
    return busy.recording()


def test_a_loop_is_named_with_its_line_its_share_and_its_seconds() -> None:
    """B32: rows one by one, with the seconds that they cost."""
    found = one(RULE, program())

    assert "iterrows() in `owed` at etl.py:31 takes 80 % of the time of `owed`" in found.headline
    assert (found.where.file, found.where.line, found.where.prefix) == (FILE, 31, "owed")
    assert found.cost_s == pytest.approx(4.0, rel=0.01)
    assert found.cause == f"line:{FILE}:31"
    assert found.severity == Severity.CRITICAL


def test_the_saving_is_the_share_give_or_take_chance_and_what_columns_take() -> None:
    low, high = one(RULE, program()).saving_s

    assert 5.0 * 0.75 * 0.73 < low < 5.0 * 0.75 * 0.75
    assert 5.0 * 0.99 * 0.85 < high < 5.0 * 0.99 * 0.87


def test_fewer_looks_make_a_wider_interval() -> None:
    def width(looks: int) -> float:
        low, high = one(RULE, program(loops=looks, others=looks)).saving_s
        return high - low

    assert width(10) > width(100)


@pytest.mark.parametrize(("loops", "fires"), [(4, False), (5, True)])
def test_it_takes_five_looks(loops: int, fires: bool) -> None:
    assert bool(asked(RULE, program(loops=loops, others=10))) == fires


@pytest.mark.parametrize(("loops", "fires"), [(1, False), (3, True)])
def test_it_takes_two_hundredths_of_the_wall_time(loops: int, fires: bool) -> None:
    assert bool(asked(RULE, program(loops=loops, others=100 - loops), looks=1)) == fires


def test_a_recording_without_looks_is_not_asked() -> None:
    busy = Busy()
    busy.tasks("owed", 10, 500)

    assert asked(RULE, busy.recording()) == []


def test_other_work_is_no_loop() -> None:
    assert asked(RULE, program("python")) == []


def test_two_loops_are_two_findings() -> None:
    busy = Busy()
    busy.tasks("owed", 10, 500)
    busy.look("owed", 31, "owed", "iterrows", 50)
    busy.look("owed", 40, "owed", "itertuples", 50)

    assert {found.where.line for found in asked(RULE, busy.recording())} == {31, 40}


# -- the code ---------------------------------------------------------------------------------


FRAME = pd.DataFrame({"a": np.arange(200), "b": np.arange(200) % 7})


def test_a_function_of_a_row_is_called_with_the_frame() -> None:
    """C35: what is printed runs."""
    found = one(RULE, program("apply(axis=1)", function="score"))
    names = run(found, frame=FRAME, score=lambda row: row["a"] * 2 + row["b"])

    assert list(names["score_of_all"](FRAME)) == list(FRAME["a"] * 2 + FRAME["b"])


@pytest.mark.parametrize("how", ["Series.apply", "Series.map"])
def test_a_function_of_a_value_is_called_with_the_column(how: str) -> None:
    found = one(RULE, program(how, function="square"))
    names = run(found, column=FRAME["a"], square=lambda value: value**2)

    assert list(names["square_of_all"](FRAME["a"])) == list(FRAME["a"] ** 2)


def test_a_function_of_a_window_is_compiled() -> None:
    found = one(RULE, program("rolling.apply", function="spread"))
    assert "called for each window by rolling.apply" in found.headline
    compile(found.fix.code, "fix", "exec")
    pytest.importorskip("numba")
    windows = FRAME["a"].rolling(3)
    result = run(found, windows=windows, spread=lambda window: window.max() - window.min())

    assert result["result"].dropna().eq(2).all()


@pytest.mark.parametrize("how", ["np.vectorize(signature)", "np.apply_along_axis"])
def test_a_function_of_a_vector_is_called_with_all_and_may_be_what_is_slow(how: str) -> None:
    found = one(RULE, program(how, function="spread"))
    values = np.arange(600).reshape(20, 10, 3)
    spread = run(found, values=values, spread=lambda v: np.ptp(v, axis=-1))["spread_of_all"]

    assert f"called for each vector by {how}" in found.headline
    assert found.saving_s[0] == 0.0 < found.saving_s[1]
    assert (spread(values) == 2).all()


def test_a_vectorized_function_is_called_with_the_array() -> None:
    found = one(RULE, program("np.vectorize", function="square"))
    values = np.arange(300)

    assert list(run(found, values=values, square=lambda v: v * v)["square_of_all"](values)) == list(
        values**2
    )


def test_a_function_that_does_not_work_on_columns_is_told_by_the_code_itself() -> None:
    found = one(RULE, program("apply(axis=1)", function="score"))

    with pytest.raises(ValueError, match="ambiguous"):
        run(found, frame=FRAME, score=lambda row: 1 if row["a"] > 3 else 0)


@pytest.mark.parametrize(
    ("file", "least"),
    [
        ("/usr/lib/python3.11/json/__init__.py", 0.0),
        ("/usr/lib/python3.11/site-packages/rapid/fuzz.py", 0.0),
        ("/usr/lib/python3.11/site-packages/pandas/core/series.py", 0.75),
    ],
)
def test_a_call_of_a_library_for_each_value_is_no_matter_of_the_loop(
    file: str, least: float
) -> None:
    """`ddf.text.map(lambda t: json.loads(t)["user"])`: no column can be given to that."""
    busy = Busy()
    busy.tasks("owed", 10, 500)
    busy.look("owed", 31, "user_of", "Series.map", 100)
    nodes = [("user_of", FILE, -1), ("called", file, 0)]
    for number, (name, path, around) in enumerate(nodes):
        busy.worker(NODE, number, around, name, path, 31)
    for node, looks in ((0, 20), (1, 80)):
        ms = 50_000_000 * looks
        busy.worker(FLAME, ns(1), STEP["compute"], "owed", "Series.map", node, looks, ms)
    found = one(RULE, busy.recording())
    assert found.saving_s[0] == pytest.approx(least * found.saving_s[1] / 0.99, rel=0.1)
    assert bool(found.fix.code) is bool(least)


@pytest.mark.parametrize(("line", "least"), [(24, 0.75), (33, 0.0)])
def test_what_a_function_does_before_its_loop_is_none_of_that(line: int, least: float) -> None:
    """It reads a file for most of its time, at line 24, and then goes through the rows, at 31."""
    busy = Busy()
    busy.tasks("owed", 10, 500)
    busy.look("owed", 31, "owed", "itertuples", 60)
    busy.look("owed", line, "owed", "library", 140)
    reads = "/usr/lib/python3.11/site-packages/pyreadstat/reader.py"
    nodes = [("owed", FILE, -1, line), ("read", reads, 0, 9), ("owed", FILE, -1, 32)]
    for number, (name, path, around, at) in enumerate(nodes):
        busy.worker(NODE, number, around, name, path, at)
    for node, looks in ((1, 140), (2, 60)):
        ms = 50_000_000 * looks
        busy.worker(FLAME, ns(1), STEP["compute"], "owed", "library", node, looks, ms)
    found = one(RULE, busy.recording())
    assert (found.saving_s[0] > 0) is bool(least)


@pytest.mark.parametrize("how", ["iterrows", "itertuples", "element access"])
def test_a_loop_gets_its_columns_as_arrays(how: str) -> None:
    columns = run(one(RULE, program(how)), frame=FRAME)["columns"]

    assert columns["b"][columns["a"] > 100].sum() == FRAME["b"][FRAME["a"] > 100].sum()


def test_a_lambda_gets_a_name_that_can_be_printed() -> None:
    found = one(RULE, program("Series.map", function="<lambda>"))

    assert "function_of_all" in run(found, column=FRAME["a"], function=abs)
