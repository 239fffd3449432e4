"""A recording that ends while the scheduler still makes tasks of a graph, or never does."""

from __future__ import annotations

import dask.dataframe as dd
import pandas as pd
import pytest

from findings.asking import one, run
from findings.crews import Crewed
from replay.handmade import CLIENT, LANE, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.nothing_to_fix import RULE
from stageprof_runtime.event import SUBMIT


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
