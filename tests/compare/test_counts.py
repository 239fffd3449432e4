"""Counts and findings are judged by what the other side's recordings had."""

from __future__ import annotations

import math
import time
from typing import Any

import dask
import dask.array as da
import pytest

import stageprof
from compare.made import COUNTS, against, run
from stageprof_collectors.comparison.comparison import Compared
from stageprof_collectors.comparison.counts import Judged
from stageprof_collectors.comparison.measured import Found, Measured, Place, measure
from stageprof_collectors.findings.finding import Severity


def counting(name: str, *values: float) -> list[Measured]:
    return [run(counts={**COUNTS, name: value}) for value in values]


def said(found: Compared, name: str) -> Judged:
    return next(c.judged for c in found.counts if c.what.name == name)


def test_more_tasks_are_a_regression_by_one_recording_a_side() -> None:
    found = against(counting("graph_tasks", 100), counting("graph_tasks", 400))

    assert said(found, "graph_tasks") == Judged.WORSE
    assert (found.regressions, found.unjudged) == (1, "one")


def test_fewer_tasks_are_an_improvement() -> None:
    found = against(counting("graph_tasks", 400), counting("graph_tasks", 100))

    assert said(found, "graph_tasks") == Judged.BETTER


def test_a_little_more_is_none() -> None:
    """Up to a twentieth more is tolerated."""
    found = against(counting("graph_bytes", 100_000), counting("graph_bytes", 104_000))

    assert said(found, "graph_bytes") == Judged.SAME


def test_what_scheduling_moves_is_not_judged_by_one_recording() -> None:
    """Which worker needs what varies from run to run."""
    one = against(counting("transferred_bytes", 1e6), counting("transferred_bytes", 3e6))
    many = against(
        counting("transferred_bytes", 1e6, 1.1e6, 1.2e6),
        counting("transferred_bytes", 3e6, 4e6, 5e6),
    )

    assert said(one, "transferred_bytes") == Judged.UNKNOWN
    assert said(many, "transferred_bytes") == Judged.WORSE


@pytest.mark.parametrize("head", [(1.5e6, 3e6, 5e6), (2.3e6, 2.4e6, 2.5e6)])
def test_what_varies_that_much_anyway_has_not_changed(head: tuple[float, ...]) -> None:
    """Within the range of the other side, or beyond it by less than it is wide."""
    found = against(
        counting("transferred_bytes", 1e6, 1.5e6, 2e6), counting("transferred_bytes", *head)
    )

    assert said(found, "transferred_bytes") == Judged.SAME


def test_a_count_that_a_recording_does_not_have_is_not_judged() -> None:
    found = against(counting("transitions", math.nan), counting("transitions", 200))

    assert said(found, "transitions") == Judged.UNKNOWN


PLACE = Place("embedded-object", "etl.py", "lookup", "scored")


def finding(number: int, having: int, severity: Severity = Severity.SERIOUS) -> list[Measured]:
    found = {PLACE: Found(severity, "`lookup` travels 400 times", 3.1)}
    return [run(findings=found if i < having else {}) for i in range(number)]


def test_a_finding_that_came_is_a_regression() -> None:
    found = against(finding(7, 0), finding(7, 6))
    (came,) = found.findings

    assert (came.judged, came.before, came.after) == (Judged.WORSE, (0, 7), (6, 7))


def test_a_finding_that_went_is_an_improvement() -> None:
    found = against(finding(7, 7), finding(7, 0))

    assert [f.judged for f in found.findings] == [Judged.BETTER]


@pytest.mark.parametrize(
    "base",
    [finding(7, 1), finding(7, 7, Severity.NOTE)],
    ids=["some of the baseline have it", "it was a note"],
)
def test_a_finding_that_was_there_did_not_come(base: list[Measured]) -> None:
    assert against(base, finding(7, 7)).findings == ()


def test_a_finding_of_half_the_recordings_is_chance() -> None:
    assert against(finding(7, 0), finding(7, 4)).findings == ()


def test_a_finding_of_one_recording_is_shown_and_not_judged() -> None:
    """It rests on times."""
    found = against(finding(1, 0), finding(1, 1))

    assert [(f.came, f.judged) for f in found.findings] == [(True, Judged.UNKNOWN)]
    assert found.regressions == 0


def held(block: Any) -> Any:
    """Slow wherever it is called, and it is while Dask asks what it will give."""
    until = time.perf_counter() + 0.1
    while time.perf_counter() < until:
        pass
    return block


def test_a_layer_that_was_made_and_never_ran_is_measured() -> None:
    """The rows of layers grow while the path is walked."""
    with stageprof.profile() as prof:
        da.ones(4, chunks=2).map_blocks(held)
        assert dask.delayed(int)(1).compute(scheduler="sync") == 1
    cells = measure(prof.recording).cells
    assert sum(seconds for cell, seconds in cells.items() if cell.step == "meta") >= 0.1
