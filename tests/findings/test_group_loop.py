"""Rule group-loop: Python for each of many small groups."""

from __future__ import annotations

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import stageprof
from findings.asking import asked, one, run
from findings.busy import FILE, Busy
from replay.handmade import ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.group_loop import RULE
from stageprof_runtime.event import FLAME, GROUPED, NODE
from stageprof_runtime.stage import STEP

LAYER = "operation-" + "1a" * 16
PANDAS = "/v/site-packages/pandas/core/groupby/groupby.py"
SCIPY = "/v/site-packages/scipy/optimize/_minimize.py"
APPLY = ("GroupBy._python_apply_general", PANDAS, 1800)
MINE = ("summary", FILE, 31)


class Grouped(Busy):
    """Ten tasks of 500 ms, and where they were seen."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks("operation", 10, 500, layer=LAYER)
        self.line(LAYER, 40)
        self._nodes = 0

    def groups(self, count: int = 5_000, rows: int = 20_000, *, loop: str = "") -> None:
        """Groups that pandas gave out, to a loop from line 30 to 33 or to a function."""
        label, last = (f"{FILE}:30 {loop}", 33) if loop else ("", 0)
        self.worker(GROUPED, ns(1), "operation", label, last, count, rows)

    def seen(self, looks: int, *stack: tuple[str, str, int]) -> None:
        """Looks at a stack, 50 ms each."""
        for i, frame in enumerate(stack):
            self.worker(NODE, self._nodes, self._nodes - 1 if i else -1, *frame)
            self._nodes += 1
        row = (STEP["compute"], "operation", "library", self._nodes - 1, looks, looks * 50_000_000)
        self.worker(FLAME, ns(1), *row)


def program(
    inside: int = 80, others: int = 20, *, count: int = 5_000, rows: int = 20_000
) -> Recording:
    """Some looks saw a function that pandas calls for each group."""
    busy = Grouped()
    busy.groups(count, rows)
    busy.seen(inside, APPLY, MINE)
    busy.seen(others, ("read", FILE, 12))
    return busy.recording()


def test_it_names_the_function_the_groups_the_line_and_what_they_cost() -> None:
    found = one(RULE, program())

    assert found.headline.startswith(
        "`summary`, called for each of 5,000 groups of 4.0 rows at etl.py:40, takes 80 % of the "
        "time of `operation`: 4.00 s"
    )
    assert (found.where.file, found.where.line) == (FILE, 40)
    assert found.evidence["each_s"] == pytest.approx(0.8e-3, rel=0.01)
    low, high = found.saving_s
    assert 5.0 * 0.6 * 0.72 < low < 5.0 * 0.6 * 0.76
    assert 5.0 * 0.99 * 0.84 < high < 5.0 * 0.99 * 0.88


@pytest.mark.parametrize(
    ("made", "fires"),
    [
        (program(9, 0), False),
        (program(10, 0), True),
        (program(count=999), False),
        (program(count=1_000), True),
        (program(count=5_000, rows=5_001_000), False),
        (program(count=5_000, rows=5_000_000), True),
        (program(11, 189), True),
        (program(10, 250), False),
    ],
)
def test_few_looks_few_groups_large_ones_or_a_small_part_are_no_reason(
    made: Recording, fires: bool
) -> None:
    assert bool(asked(RULE, made)) is fires


def test_what_pandas_itself_takes_for_each_group_counts_and_what_another_library_does_not() -> None:
    """Of 100 looks 30 are in the function, 20 in pandas alone, 50 in a fit that groups need."""
    busy = Grouped()
    busy.groups()
    busy.seen(30, APPLY, MINE)
    busy.seen(20, APPLY)
    busy.seen(50, APPLY, MINE, ("minimize", SCIPY, 1), ("objective", FILE, 50))
    assert one(RULE, busy.recording()).cost_s == pytest.approx(2.5, rel=0.01)


def test_groups_that_nobody_counted_are_no_finding() -> None:
    busy = Grouped()
    busy.seen(80, APPLY, MINE)
    assert asked(RULE, busy.recording()) == []


def test_a_loop_of_the_users_is_what_stands_in_its_lines() -> None:
    busy = Grouped()
    busy.groups(loop="summaries")
    for line, looks in ((29, 10), (30, 20), (33, 40), (34, 30)):
        busy.seen(looks, ("summaries", FILE, line))
    found = one(RULE, busy.recording())

    assert found.headline.startswith(
        "A loop over 5,000 groups of 4.0 rows in `summaries` at etl.py:30 takes 60 %"
    )
    assert (found.where.file, found.where.line) == (FILE, 30)


def test_calls_and_a_loop_of_one_prefix_are_two_findings() -> None:
    busy = Grouped()
    busy.groups()
    busy.groups(loop="summaries")
    busy.seen(50, APPLY, MINE)
    busy.seen(50, ("summaries", FILE, 32))
    assert {f.where.line for f in asked(RULE, busy.recording())} == {30, 40}


def test_functions_of_several_lines_are_told_together_with_where_they_are() -> None:
    """Their tasks have one prefix: whose groups are whose, and in which line, is not known."""
    busy = Grouped()
    busy.groups(2_000)
    busy.groups(3_000)
    busy.seen(30, APPLY, MINE)
    busy.seen(20, APPLY, ("summary", FILE, 33))
    busy.seen(30, APPLY, ("spread", FILE, 36))
    busy.seen(5, APPLY, ("seldom", FILE, 39))
    found = one(RULE, busy.recording())
    assert found.headline.startswith(
        "`summary` at etl.py:31 and `spread` at etl.py:36, called for each of 5,000 groups of "
        "8.0 rows, take "
    )
    assert (found.where.file, found.where.line) == (FILE, 31)


def test_python_of_the_function_is_not_told_beside_it() -> None:
    """All groups at once is what helps; its lines go with it."""
    busy = Grouped()
    busy.groups()
    busy.seen(90, APPLY, MINE)
    busy.look("operation", 31, "summary", "python", 90)
    assert [f.rule for f in busy.recording().findings() if f.saving_s[1] > 1] == ["group-loop"]


def test_python_that_takes_long_for_few_groups_is_told_instead() -> None:
    busy = Grouped()
    busy.groups(200, 800)
    busy.seen(90, APPLY, MINE)
    busy.look("operation", 31, "summary", "python", 90)
    assert busy.recording().findings()[0].rule == "python-bound"


@pytest.mark.parametrize("divided", [False, True], ids=["pandas", "dask"])
def test_the_printed_code_does_all_groups_at_once(divided: bool) -> None:
    frame = pd.DataFrame({"k": [1, 1, 2], "x": [1, 2, 3], "t": [5, 7, 6]})
    given = dd.from_pandas(frame, npartitions=2) if divided else frame
    done = run(one(RULE, program()))["summary_of_all"](given, "k")
    (known,) = dask.compute(done)
    assert known["x", "sum"].tolist() == [3, 3]
    assert known["t", "max"].tolist() == [7, 6]


def _spread(group: pd.DataFrame) -> float:
    ordered = group.sort_values("x")
    return float(ordered["x"].iloc[-1] - ordered["x"].iloc[0])


def test_a_function_of_the_users_is_found_by_its_stacks() -> None:
    """With pandas' own; the groups are counted over all tasks."""
    frame = pd.DataFrame({"k": np.arange(6_000) % 3_000, "x": np.arange(6_000.0)})
    parts = [dask.delayed(frame) for _ in range(8)]  # so many that enough looks see them
    with stageprof.profile() as prof:
        for part in parts:
            dask.delayed(_spreads)(part).compute(scheduler="sync")
    found = one(RULE, prof.recording)

    assert "`_spread`, called for each of 24,000 groups of 2.0 rows" in found.headline
    assert float(found.evidence["share_of_tasks"]) > 0.8


def _spreads(frame: pd.DataFrame) -> float:
    return float(frame.groupby("k")[["x"]].apply(_spread).sum())
