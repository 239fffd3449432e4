"""Recordings side by side: what is matched with what, and what is said of the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from serving import running
from stageprof.app import compared
from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where
from stageprof_collectors.recording import Recording
from stageprof_collectors.summary import StageLine, Summary
from stageprof_runtime.stage import Stage
from stageprof_ui import words
from stageprof_ui.columns import comparison
from stageprof_ui.columns.comparison import Side
from ui.conftest import Watched, overhang

HASH = "0123456789abcdef0123456789abcdef"
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e"


class Recorded:
    """As much of a recording as a comparison asks for."""

    def __init__(self, rows: Iterable[tuple[str, str, int, float, int]]) -> None:
        names = ["prefix", "file", "line", "wall_s", "tasks"]
        self._layers = pd.DataFrame(list(rows), columns=names)

    def layers(self) -> pd.DataFrame:
        return self._layers.copy()


def finding(rule: str, cost: float = 1.0, **more: Any) -> Finding:
    where = Where(**more)
    evidence: dict[str, float] = {}
    return Finding(
        rule, Severity.SERIOUS, f"{rule} here", None, evidence, cost, (0, cost), Fix("do"), where
    )


def side(
    number: int = 0,
    layers: Iterable[tuple[str, str, int, float, int]] = (),
    findings: Iterable[Finding] = (),
    walls: dict[Stage, float] | None = None,
    label: str = "run",
) -> Side:
    walls = walls or {Stage.EXECUTION: 1.0}
    total = sum(walls.values())
    stages = tuple(
        StageLine(s, walls.get(s, 0.0), walls.get(s, 0.0) / max(total, 1e-9), 0.0) for s in Stage
    )
    summary = Summary(
        label, total, (), tuple(findings), (), (), stages, (), None, (), "", (), "", f"/x/{label}.f"
    )
    recording: Any = Recorded(layers)
    return Side(comparison.letter_of(number), f"{label}.f", label, recording, summary)


# -- layers -----------------------------------------------------------------------------------


def test_layers_are_matched_by_prefix_and_line_whatever_the_folder() -> None:
    a = side(layers=[("sum", "/home/a/etl.py", 3, 1.0, 10), ("sum", "/home/a/etl.py", 9, 0.5, 1)])
    b = side(1, layers=[("sum", "/ci/etl.py", 3, 4.0, 20)])
    frame = comparison.layers([a, b])
    rows = {
        (r["prefix"], r["line"]): (r["wall_0"], r["tasks_0"], r["wall_1"], r["tasks_1"])
        for r in frame.fillna(-1).to_dict("records")
    }
    assert rows == {("sum", "etl.py:3"): (1.0, 10, 4.0, 20), ("sum", "etl.py:9"): (0.5, 1, -1, -1)}
    assert frame["change"].tolist() == [3.0, -0.5]


def test_layers_of_one_prefix_and_line_are_one() -> None:
    a = side(layers=[("add", "x.py", 1, 1.0, 2), ("add", "x.py", 1, 2.0, 3)])
    frame = comparison.layers([a, side(1)])
    assert frame[["wall_0", "tasks_0"]].to_numpy().tolist() == [[3.0, 5.0]]


def test_what_changed_most_comes_first_and_the_rest_is_counted() -> None:
    a = side(layers=[(f"l{i}", "", 0, 1.0, 1) for i in range(5)])
    b = side(1, layers=[(f"l{i}", "", 0, 1.0 + i * (-1) ** i, 1) for i in range(5)])
    frame = comparison.layers([a, b])
    assert frame["prefix"].tolist() == ["l4", "l3", "l2", "l1", "l0"]
    rows = comparison.layer_rows(frame, 2, most=2)
    assert [row["cells"][1]["change"] for row in rows] == ["+4.00 s", "\N{MINUS SIGN}3.00 s"]


def test_of_three_sides_the_one_farthest_from_the_first_counts() -> None:
    sides = [side(i, layers=[("x", "", 0, wall, 1)]) for i, wall in enumerate((5.0, 1.0, 6.0))]
    frame = comparison.layers(sides)
    assert frame["change"].tolist() == [-4.0]
    changes = [cell["change"] for cell in comparison.layer_rows(frame, 3)[0]["cells"]]
    assert changes == ["", "\N{MINUS SIGN}4.00 s", "+1.00 s"]


def test_recordings_without_layers_have_an_empty_table() -> None:
    frame = comparison.layers([side(), side(1)])
    assert len(frame) == 0
    assert comparison.layer_rows(frame, 2) == []


# -- findings ---------------------------------------------------------------------------------


def test_findings_come_go_and_stay() -> None:
    stays, went, came = finding("stays", file="a/x.py", line=3), finding("went"), finding("came")
    moved = replace(stays, where=Where(file="/b/x.py", line=3), cost_s=2.0)
    met = comparison.findings([side(findings=[stays, went]), side(1, findings=[moved, came])])
    assert [(m.how, m.latest.rule, m.latest.cost_s) for m in met] == [
        ("came", "came", 1.0),
        ("went", "went", 1.0),
        ("stays", "stays", 2.0),
    ]
    assert [row["costs"] for row in comparison.finding_rows(met)] == [
        ["", "1.00 s"], ["1.00 s", ""], ["1.00 s", "2.00 s"],
    ]  # fmt: skip


def test_the_hash_of_a_layer_does_not_tell_findings_apart() -> None:
    a, b = finding("r", layer=f"sum-{HASH}"), finding("r", layer=f"sum-{HASH[::-1]}")
    assert comparison.key_of(a) == comparison.key_of(b)
    assert comparison.key_of(a) != comparison.key_of(finding("r", layer="add"))


def test_notes_on_every_side_are_left_out() -> None:
    note = replace(finding("r"), severity=Severity.NOTE)
    assert comparison.findings([side(findings=[note]), side(1, findings=[note])]) == []
    assert len(comparison.findings([side(findings=[note]), side(1, findings=[finding("r")])])) == 1


# -- stages -----------------------------------------------------------------------------------


def test_bars_have_one_scale() -> None:
    long = side(walls={Stage.EXECUTION: 3.0, Stage.OUTSIDE: 1.0})
    short = side(1, walls={Stage.EXECUTION: 2.0})
    facts = comparison.stages([long, short])
    percent = [[part["percent"] for part in s["parts"]] for s in facts["sides"]]
    assert percent == [[75.0, 25.0], [50.0]]
    execution = next(row for row in facts["rows"] if row["stage"] == "execution")
    assert execution["cells"][1]["change"] == "\N{MINUS SIGN}1.00 s"
    assert facts["total"][1]["change"] == "\N{MINUS SIGN}2.00 s"


@pytest.mark.parametrize(
    ("difference", "shown"),
    [(0.0, "0 s"), (1.5, "+1.50 s"), (-0.01, "\N{MINUS SIGN}10 ms"), (float("nan"), "?")],
)
def test_differences_have_their_sign(difference: float, shown: str) -> None:
    assert comparison.signed(difference) == shown


def test_a_run_of_no_time_is_no_division_by_zero() -> None:
    facts = comparison.stages([side(walls={Stage.OUTSIDE: 0.0}), side(1, walls={})])
    assert facts["sides"][0]["parts"] == []


def test_hostile_texts_are_escaped_wherever_they_are() -> None:
    bad = finding("r", variable=HOSTILE)
    bad = replace(bad, headline=HOSTILE)
    sides = [
        side(i, layers=[(HOSTILE, HOSTILE, 1, 1.0, 1)], findings=[bad], label=HOSTILE)
        for i in range(2)
    ]
    letters = ["A", "B"]
    page = words.html("compare_stages", **comparison.stages(sides), shown=0)
    rows = comparison.finding_rows(comparison.findings(sides))
    page += words.html("compare_findings", letters=letters, rows=rows)
    rows = comparison.layer_rows(comparison.layers(sides), 2)
    page += words.html("compare_layers", letters=letters, rows=rows, left_out=0)
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.count("&lt;img") > 5


# -- in a browser -------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_is_in_front_and_leads_to_the_pages_of_each(
    watched: Watched, generated: Callable[[int], Path], width: int
) -> None:
    app = compared([Recording.open(generated(n)) for n in (1_000, 10_000)])
    with running(app):
        page = watched.page
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(app.url)
        page.locator("[data-sp-view=compare] h2", has_text="Wall time by stage").wait_for()
        assert page.locator("[data-sp-view=compare] .track").count() == 2
        assert overhang(page) <= 0
        assert "1,000 tasks" in page.locator(".sp-facts").inner_text()
        page.get_by_text("show B on the other pages").click()
        page.wait_for_function(
            "document.querySelector('.sp-facts')?.textContent.includes('10,000 tasks')"
        )
        page.locator("[data-sp-view=overview]").wait_for()
        page.goto(f"http://127.0.0.1:{app.port}/?recording=../x")
        page.locator("[data-sp-view=compare] .track").first.wait_for()
        assert "1,000 tasks" in page.locator(".sp-facts").inner_text()
