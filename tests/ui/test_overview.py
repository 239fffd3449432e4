"""What a finding saves and costs is worded alike on the first page and wherever else it stands."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from findings.made import found, made
from stageprof.renderers import findings, markdown, notebook
from stageprof_collectors.summary import summarize
from stageprof_ui.columns import overview
from stageprof_ui.columns.boxes import Pile, Row
from stageprof_ui.columns.lines import THREAD, waterfall
from stageprof_ui.words import html

NAN = math.nan
BEFORE_A_RUN = {"cost_s": NAN, "saving_s": (NAN, NAN)}


def forms(**fields: Any) -> dict[str, str]:
    """What each form says of one finding, in lower case and without what makes it bold."""
    recording = made()
    one = replace(found("embedded-object", 5.4, 6.1), **fields)
    summary = replace(summarize(recording), findings=(one,))
    whole = {
        "app": html("cards", app="a", **overview.findings(recording, summary)),
        "notebook": notebook.html(summary),
        "markdown": markdown.text(summary),
        "terminal": findings.text(summary),
    }
    return {
        name: re.sub(r"</?b>|\*\*| (?= )", "", text).replace("&lt;", "<").lower()
        for name, text in whole.items()
    }


@pytest.mark.parametrize(
    ("fields", "saving", "cost"),
    [
        ({}, "5.4-6.1 s", "6.10 s (30 % of the run)"),
        ({"cost_s": 0.00001, "saving_s": (0, 0.00001)}, "0.0 ms", "<0.1 ms (<1 % of the run)"),
    ],
)
def test_what_it_saves_and_costs(fields: dict[str, Any], saving: str, cost: str) -> None:
    said = forms(**fields)
    assert f" saves {saving}\n" in said["terminal"]
    assert f" costs {cost}\n" in said["terminal"]
    for name in ("app", "notebook", "markdown"):
        assert f"saves {saving}, costs {cost}" in said[name], name


def test_what_is_not_known_before_a_run() -> None:
    said = forms(**BEFORE_A_RUN)
    assert " saves not known before a run\n" in said["terminal"]
    for name in ("app", "notebook", "markdown"):
        assert "what it saves is not known before a run" in said[name], name
    assert not [name for name, text in said.items() if ", costs" in text or " costs ?" in text]


@pytest.mark.parametrize("role", ["client", "scheduler"])
def test_a_run_without_a_scheduler_has_no_line_of_one(role: str) -> None:
    """A local scheduler is part of the client."""
    pile, when = Pile(0, 2_000_000), np.array([0])
    for label, kind in (("critical path", "path"), (role, role), ("w, thread 1", THREAD)):
        pile.add(Row(label, 0, kind), when, when + 1_000_000, 0)
    for name in ("client", "scheduler", "worker"):
        pile.add(Row(name, -1, "path here"), when[:0], when[:0], 0)
    labels = [line.label for line in waterfall(pile.boxes()) if line.label]
    assert ("scheduler" in labels) == (role == "scheduler")
    assert {"critical path", "client", "workers"} <= set(labels)


def test_findings_that_have_no_card_are_counted() -> None:
    """The twenty-first vanished without a word, and notes were said to be twenty."""
    recording = made()
    changes = tuple(found(f"rule-{i}", 5.0) for i in range(overview.TOP + 3))
    notes = tuple(found(f"note-{i}", 0.0) for i in range(overview.TOP + 1))
    summary = replace(summarize(recording), findings=(*changes, *notes))
    assert summary.changes == changes
    said = html("cards", app="a", **overview.findings(recording, summary))
    assert "3 more are not shown; <code>stageprof show --json</code> has all." in said
    assert f"{overview.TOP + 1} notes: true, but little to gain" in said
    assert "1 more is not shown;" in said
    few = replace(summary, findings=(changes[0], notes[0]))
    said = html("cards", app="a", **overview.findings(recording, few))
    assert "not shown" not in said
    assert "1 note: true" in said
