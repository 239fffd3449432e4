"""Counts and findings are judged by what the other side's recordings had."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from typing import Any

import dask
import dask.array as da
import pytest

import stageprof
from compare.made import CONDITIONS, COUNTS, LOAD, against, run, runs
from stageprof.renderers import compare_json
from stageprof.renderers.compare_junit import text as junit_text
from stageprof.renderers.compare_markdown import text as markdown_text
from stageprof.renderers.compare_notebook import html as notebook_html
from stageprof.renderers.compare_terminal import text as terminal_text
from stageprof_collectors.comparison import sentences
from stageprof_collectors.comparison.comparison import Compared
from stageprof_collectors.comparison.counts import CountChange, Judged
from stageprof_collectors.comparison.measured import Found, Measured, Place, measure
from stageprof_collectors.comparison.worth import Why
from stageprof_collectors.findings.finding import Severity
from stageprof_ui.columns import judgement


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


def count_of(found: Compared, name: str) -> CountChange:
    return next(c for c in found.counts if c.what.name == name)


def lasting(seconds: float, /, number: int = 1, **counts: float) -> list[Measured]:
    """Runs of so many seconds."""
    cells = {LOAD: seconds}
    return [run(cells, counts={**COUNTS, **counts}) for _ in range(number)]


def test_two_tasks_more_are_no_regression() -> None:
    """What `traverse=False` costs that the advice of embedded-object prints."""
    found = against(
        lasting(8.06, graph_tasks=25, layers=2), lasting(4.49, graph_tasks=27, layers=4)
    )

    assert (found.regressions, sentences.verdict(found)) == (
        0,
        "No regression in what can be judged; wall time -44 % is not",
    )
    assert count_of(found, "graph_tasks").why == Why.LITTLE
    assert count_of(found, "layers").why == Why.LITTLE


def test_a_wall_time_that_is_not_judged_is_told_on_every_face_and_not_called_not_worse() -> None:
    """One recording a side proves nothing, but a reader sees what it took."""
    found = against(lasting(4), lasting(9))

    told = "No regression in what can be judged; wall time +125 % is not"
    for face in (terminal_text, markdown_text, notebook_html):
        assert told in " ".join(face(found).split())
    assert judgement.facts(found)["heading"] == "Not judged: wall time +125 %"


@pytest.mark.parametrize(("after", "heading"), [(4, "Not worse"), (9, "Worse")])
def test_the_heading_of_what_is_judged_says_whether_it_is_worse(after: int, heading: str) -> None:
    found = against(lasting(4, 7), lasting(after, 7))

    assert judgement.heading(found) == f"{heading} than the baseline"


def test_more_tasks_that_nobody_notices_beside_the_wall_time_are_none() -> None:
    """A hundred tasks more cost a tenth of a second."""
    for seconds, regressions in ((60, 0), (5, 1)):
        base, head = lasting(seconds, graph_tasks=1000), lasting(seconds, graph_tasks=1100)
        assert against(base, head).regressions == regressions


@pytest.mark.parametrize("number", [1, 7])
def test_ten_times_the_tasks_are_a_regression_however_long_it_takes(number: int) -> None:
    """Whatever hides them here: the times are the same, and they cost a hundredth of them."""
    base = lasting(60, number, graph_tasks=30)
    found = against(base, lasting(60, number, graph_tasks=300))

    assert said(found, "graph_tasks") == Judged.WORSE
    assert found.regressions == 1


def test_more_tasks_are_no_regression_where_the_wall_time_is_judged_to_be_better() -> None:
    base = runs(seed=1, counts={**COUNTS, "graph_tasks": 100})
    head = runs(seed=2, more={LOAD: -0.4}, counts={**COUNTS, "graph_tasks": 4000})
    found = against(base, head)

    assert found.wall.judged == Judged.BETTER
    assert (said(found, "graph_tasks"), found.regressions) == (Judged.SAME, 0)
    assert count_of(found, "graph_tasks").why == Why.FASTER


@pytest.mark.parametrize(
    ("seconds", "tasks", "worse"), [(4.0, 500, 0), (7.5, 500, 1), (4.0, 2000, 1)]
)
def test_few_recordings_excuse_more_tasks_only_if_they_are_plainly_faster(
    seconds: float, tasks: float, worse: int
) -> None:
    """By a fifth, and not ten times as many."""
    found = against(lasting(8.0, graph_tasks=100), lasting(seconds, graph_tasks=tasks))

    assert (found.unjudged, found.regressions) == ("one", worse)


def test_a_faster_machine_excuses_no_tasks() -> None:
    """Where times cannot be compared, counts are what is left to fail a build."""
    other = {**CONDITIONS, "machine": "other"}
    head = [replace(each, conditions=other) for each in lasting(4.0, 7, graph_tasks=500)]
    found = against(lasting(8.0, 7, graph_tasks=100), head)

    assert (found.unjudged, found.regressions) == ("differ", 1)


def test_why_a_count_that_grew_is_no_regression_is_said_on_every_face() -> None:
    found = against(lasting(8.0, graph_tasks=25), lasting(8.0, graph_tasks=27))
    counted = json.loads(compare_json.text(found))["counts"]
    texts = [show(found) for show in (terminal_text, markdown_text, notebook_html)]

    assert {c["name"]: c["why"] for c in counted}["graph_tasks"] == "little"
    assert all("too little" in text for text in texts)
    assert judgement.facts(found)["counts"][1]["word"] == "too little"
    assert "less than 10 ms or 0.5 % of the wall time" in " ".join(
        judgement.facts(found)["reasons"]
    )


def test_what_is_said_of_a_count_is_never_cut() -> None:
    """The change and the word have room, also of what was nearly nothing, and of wide ranges."""
    low, high = (
        {**COUNTS, "transferred_bytes": 240.0, "transitions": n, "graph_bytes": n}
        for n in (1_000_000_123.0, 9_000_000_123.0)
    )
    grown = {**COUNTS, "transferred_bytes": 39_992_463.0, "transitions": 3e10, "tasks": 200.0}
    shown = terminal_text(against([run(counts=low), run(counts=high)], [run(counts=grown)]))

    assert "moved between workers  240 B -> 40.0 MB                  x 166,635  not judged" in shown
    assert "transitions of tasks   1,000,000,123 to 9,000,000,123\n" in shown
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80


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


@pytest.mark.parametrize("kind", ["machine", "cluster"])
def test_a_finding_of_another_machine_is_shown_and_not_judged(kind: str) -> None:
    """What fits into 64 CPUs' memory is moved to disk by two, and the program is the same."""
    elsewhere = CONDITIONS | {kind: "2 CPUs, 2 GB"}
    head = [replace(each, conditions=elsewhere) for each in finding(7, 7)]
    found, forced = against(finding(7, 0), head), against(finding(7, 0), head, force=True)

    assert [f.judged for f in found.findings] == [Judged.UNKNOWN]
    assert (found.regressions, forced.regressions) == (0, 1)
    assert "not judged: conditions differ" in terminal_text(found)
    assert "new, not judged" in markdown_text(found)
    assert "was in 0 of 7): conditions differ" in junit_text(found)


def test_a_finding_under_other_versions_is_judged() -> None:
    """They came with the change."""
    newer = CONDITIONS | {"versions": "dask 2026.9.0"}
    head = [replace(each, conditions=newer) for each in finding(7, 7)]
    assert against(finding(7, 0), head).regressions == 1


@pytest.mark.parametrize("force", [False, True])
def test_a_finding_of_recordings_that_lack_events_is_not_judged(*, force: bool) -> None:
    head = [replace(each, lost="5 events lost") for each in finding(7, 7)]
    found = against(finding(7, 0), head, force=force)
    assert [f.judged for f in found.findings] == [Judged.UNKNOWN]


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
