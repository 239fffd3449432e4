"""A recording that ends while the scheduler still makes tasks of a graph, or has just done so."""

from __future__ import annotations

import dask.dataframe as dd
import pandas as pd
import pytest

from findings.asking import one, run
from findings.crews import Crewed
from replay.handmade import CLIENT, LANE, SCHEDULER, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.nothing_to_fix import RULE
from stageprof_runtime.event import BLOCK, SPAN, SUBMIT
from stageprof_runtime.stage import STEP
from stageprof_runtime.underway import GAVE_UP


def ended(after: float, *, earlier: bool = False) -> Recording:
    """So many ms after a graph of etl.py:7 was handed over; one before it may have been done."""
    made = Crewed(2)
    if earlier:
        cause = -1 - made.graph(0, 0, 0)
        made.run(0, 0, 50, cause=cause, key="earlier-1", wanted=True)
        made.wait_for(0, 50, "earlier-1")
    made._rows[CLIENT].append((SUBMIT, 9, ns(100), 1, 0, LANE, "etl.py", 7))
    return made.recording(100 + after)


@pytest.mark.parametrize("earlier", [False, True])
def test_a_graph_that_never_became_tasks_is_told_by_its_line(earlier: bool) -> None:
    found = one(RULE, ended(8000, earlier=earlier))

    assert found.headline == (
        "After 8.00 s the scheduler had made no tasks of the graph of etl.py:7"
    )
    assert (found.where.file, found.where.line) == ("etl.py", 7)
    assert found.cost_s == pytest.approx(8.0)
    frame = dd.from_pandas(pd.DataFrame({"x": range(4)}), npartitions=2)
    assert run(found, ddf=frame)["ddf"].x.sum().compute() == 6


def test_one_that_was_under_way_for_a_moment_is_not() -> None:
    """Many a recording is cut short, and any graph takes its time."""
    assert "had made no tasks" not in one(RULE, ended(4900)).headline


def taken(tasks: int, begun: int, *, by: float = 8000, end: float = 9000) -> Recording:
    """A graph of so many tasks that was there after `by` ms; those that had begun by the end."""
    made = Crewed(2)
    cause = -1 - made.graph(0, 100, by)
    rows = made.rows_of(SCHEDULER)
    rows[-1] = (*rows[-1][:4], tasks, *rows[-1][5:])
    for _ in range(begun):
        made.run(0, by, by + 1, cause=cause)
    return made.recording(end)


def test_a_graph_whose_tasks_had_hardly_begun_is_told_by_their_number() -> None:
    found = one(RULE, taken(2_568_403, 4))

    assert found.headline == (
        "2,568,403 tasks in the graph of etl.py:1 took 8.00 s until the first could begin; 4 had"
    )
    assert (found.where.file, found.where.line) == ("etl.py", 1)
    assert found.cost_s == found.saving_s[1] == pytest.approx(8.0)
    assert (found.evidence["tasks"], found.evidence["begun"]) == (2_568_403, 4)


@pytest.mark.parametrize(
    "other", [taken(30, 4), taken(1000, 4, by=4900), taken(1000, 4, end=30_000)]
)
def test_one_whose_tasks_ran_or_had_the_time_to_is_not(other: Recording) -> None:
    assert "could begin" not in one(RULE, other).headline


@pytest.mark.parametrize("call", ["_gather-", "_gather"])
def test_what_a_scheduler_was_at_is_told_though_the_program_gave_up(call: str) -> None:
    """It was still optimizing when somebody pressed Ctrl-C: no row of the graph is there."""
    made = Crewed(2)
    made._rows[CLIENT].append((SUBMIT, 0, ns(100), 1, 0, LANE, "etl.py", 7))
    made.rows_of(SCHEDULER).append((SPAN, STEP["lowlevel"], ns(1000), ns(6000), 1, "", 0))
    call = call.replace("-", GAVE_UP)
    made._rows[CLIENT].append((BLOCK, ns(100), ns(9000), LANE, call, 0, 0, 0, ""))
    steps = made.recording(9000).steps().set_index("step")["wall_s"]

    assert steps["lowlevel"] == pytest.approx(5.0)
    assert steps["place"] == pytest.approx(3.9)
    assert "result.gather" not in steps.index
