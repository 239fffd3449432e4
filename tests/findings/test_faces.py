"""Findings in every form: what is said, that it fits, and that no text of theirs acts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import stageprof
from findings.conftest import Only
from findings.made import found, made, rule
from findings.pages import NAMES, OURS, Page, parsed
from stageprof.renderers import document, findings, markdown, notebook, terminal
from stageprof_collectors.account.first_task import FirstTask
from stageprof_collectors.findings.diagnosis import examine
from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where
from stageprof_collectors.findings.quantity import size, span
from stageprof_collectors.findings.settings import Settings
from stageprof_collectors.summary import LayerLine, StepLine, Summary, summarize
from stageprof_ui.columns import overview
from stageprof_ui.palette import SEVERITY_COLOURS, SEVERITY_STYLES
from stageprof_ui.words import html

LONG = (
    "`lookup`, a DataFrame of 182 MB made at etl.py:41, is embedded in 400 tasks of "
    "map_partitions (etl.py:57): 6.1 s of 19.4 s"
)


def three(only: Only, *more: Finding) -> Summary:
    every = [
        found("embedded-object", 5.4, 6.1, headline=LONG),
        found("tiny-tasks", 0.9, 1.2, headline="120,000 tasks of 0.4 ms", where=Where("b.py", 7)),
        found("spilling", 0.0, 1.3, headline="4.1 GB spilled", where=Where()),
        *more,
    ]
    only(*(rule(id_, [f for f in every if f.rule == id_]) for id_ in {f.rule for f in every}))
    return summarize(made(Path("etl.stageprof").absolute(), expr=0.2, tokenize=1.0))


# -- quantities ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (5.4, 6.04, "5.4-6.0 s"),
        (0.12, 0.34, "120-340 ms"),
        (0.0, 2.1, "up to 2.1 s"),
        (6.0, 6.0, "6.0 s"),
        (0.001, 0.0034, "1.0-3.4 ms"),
        (0.2, 1.3, "0.2-1.3 s"),
        (60, 110, "60-110 s"),
        (100, 240, "1.7-4.0 min"),
        (3600, 9000, "1.0-2.5 h"),
        (0, 0, "no time"),
        (0, float("nan"), "?"),
    ],
)
def test_interval_has_one_unit(low: float, high: float, text: str) -> None:
    assert span(low, high) == text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(640, "640 B"), (12_500_000, "12.5 MB"), (182e6, "182 MB"), (1e9, "1.0 GB"), (5e12, "5.0 TB")],
)
def test_sizes_are_in_powers_of_ten(nbytes: float, text: str) -> None:
    assert size(nbytes) == text


def test_every_severity_has_its_colours() -> None:
    assert set(SEVERITY_COLOURS) == set(SEVERITY_STYLES) == set(Severity)


# -- the summary --------------------------------------------------------------------------


def test_summary_has_the_best_three_first_in_a_line_each(only: Only) -> None:
    lines = terminal.text(three(only)).splitlines()
    assert lines[3:7] == [
        "What to change",
        "  serious  embedded-object: `lookup`                etl.py:41    saves 5.4-6.1 s",
        "  moderate 120,000 tasks of 0.4 ms                  b.py:7       saves 0.9-1.2 s",
        "  moderate 4.1 GB spilled                                      saves up to 1.3 s",
    ]


def test_summary_says_how_many_more_there_are(only: Only) -> None:
    text = terminal.text(three(only, found("late-workers", 0.61)))
    assert "What to change" in text
    assert "3 of 4" in text
    assert "late-workers" not in text


def test_summary_says_with_the_bound_that_nothing_is_to_change(only: Only) -> None:
    only(rule("spilling", [found("spilling", 0.1)]))
    lines = terminal.text(summarize(made(tokenize=0.4))).splitlines()
    assert lines[3] == "Nothing to fix: no stage around the tasks costs more than 400 ms (2 %)"
    assert "spilling" not in "\n".join(lines)


def test_summary_without_a_rule_says_that_none_was_asked_that_found_anything(only: Only) -> None:
    only()
    settings = Settings(off=frozenset({"nothing-to-fix"}))
    assert made().findings(settings) == []
    text = terminal.text(summarize(made(), settings))
    assert "Nothing to change: no rule that is on found anything" in text


def test_longest_summary_fits_80_columns_and_30_lines(
    only: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "BEGAN", str(Path.cwd()))
    stage = stageprof.Stage.EXECUTION
    worst = replace(
        three(only, found("late-workers", 0.7)),
        steps=(StepLine(stage, "compute", 1.0, 0.5, "10,000 workers, mostly " + "日" * 90),) * 3,
        layers=(LayerLine("日本" * 60, "x" * 300 + ".py:1", 10**9, 5e5),) * 3,
        first=FirstTask(9.0, "日" * 50, 3, tuple((s, 1.0) for s in stageprof.Stage)),
        coverage="very much was seen and much was lost " * 9,
        problems=("cluster lost: because " * 20, "another"),
        incomplete="recording incomplete: " * 9,
        file="r.stageprof",
    )
    lines = terminal.text(worst).splitlines()
    assert len(lines) <= 30
    assert max(map(cell_len, lines)) <= 80
    assert "stageprof show --findings r.stageprof" in lines[-1]


def test_diagnosis_that_took_long_is_said(only: Only) -> None:
    only()
    recording = made()
    examine(recording, clock=iter([0.0, 3.25]).__next__)
    assert "diagnosis 3.25 s" in terminal.text(summarize(recording))
    assert "diagnosis" not in terminal.text(summarize(made()))


def test_rule_that_failed_is_a_problem_in_every_form(only: Only) -> None:
    only(rule("bad", ["nonsense"]))
    recording = made()
    summary = summarize(recording)
    said = "bad: it returned str, not Finding"
    for text in (terminal.text(summary), findings.text(summary), notebook.html(summary)):
        assert f"rule failed: {said}" in text
    assert document.document(recording)["coverage"]["rules_failed"] == [said]


# -- in full ------------------------------------------------------------------------------

FULL = """\
stageprof  etl.py
20.0 s wall time · 0 tasks in 0 computations · 1 finding

1  serious   `lookup`, a DataFrame of 182 MB made at etl.py:41, is embedded in
             400 tasks of map_partitions (etl.py:57): 6.1 s of 19.4 s
   costs     6.10 s (30 % of the run)
   saves     5.4-6.1 s
   line      /home/u/etl.py:41
   variable  lookup
   layer     map_partitions-1a2b
   tasks     map_partitions
   evidence  dump 1.25 s · object 182 MB · copies 400
   do        Load it in the task.

       import dask

       @dask.delayed
       def load():
           return 1

   https://github.com/stageprof/stageprof/blob/main/docs/findings.md#embedded-object
   to leave it out: --rule embedded-object=off

Not your problem
  Optimizing graphs costs at most 200 ms (1 %) of the wall time
  Scheduling costs at most 0 s (0 %) of the wall time"""


def test_finding_in_full_is_as_it_always_was(only: Only) -> None:
    only(rule("embedded-object", [found("embedded-object", 5.4, 6.1, headline=LONG)]))
    assert findings.text(summarize(made(expr=0.2))) == FULL


RATES = {"bytes_per_s": 25_000.0, "tasks_per_s": 12.0, "dump_s": 1.25, "share_of_tasks": 0.846}


def test_a_rate_is_no_duration_on_any_face(only: Only) -> None:
    """`bytes_per_s` ends in `_s`, and 25,000 of these were shown as seven hours."""
    only(rule("a", [found("a", 5.4, evidence=RATES)]))
    recording = made()
    summary = summarize(recording)
    for text in (findings.text(summary), markdown.text(summary)):
        words = " ".join(text.replace(",", " ·").split())
        assert "rate 25.0 kB/s · tasks 12/s · dump 1.25 s · share of tasks 85 %" in words
    card = notebook.html(summary)
    assert all(f">{value}</td>" in card for value in ("25.0 kB/s", "12/s", "1.25 s", "85 %"))
    [app] = overview.findings(recording, summary)["cards"]
    assert {("rate", "25.0 kB/s"), ("share of tasks", "85 %")} <= set(app["evidence"])


def test_code_is_printed_so_that_it_runs_when_copied(only: Only) -> None:
    code = "names = {'é': '日本', \"a\": [1]}\nif names:\n    total = len(names)  # " + "x" * 200
    only(rule("a", [found("a", 5.0, fix=Fix("Do.", code))]))
    lines = findings.text(summarize(made())).splitlines()
    begin = next(i for i, line in enumerate(lines) if "names = {" in line)
    copied = "\n".join(line.removeprefix(" " * 7) for line in lines[begin : begin + 3])
    assert copied == code
    scope: dict[str, Any] = {}
    exec(copied, scope)
    assert scope["total"] == 2


def test_findings_keep_within_80_columns_but_for_what_is_copied(only: Only) -> None:
    text = findings.text(three(only, found("late-workers", 0.7, headline="long word " + "y" * 300)))
    wide = [line for line in text.splitlines() if cell_len(line) > 80]
    assert wide
    assert all("https://" in line for line in wide)
    assert "late-workers=off" in text


def test_notes_are_in_the_full_list_but_not_in_the_summary(only: Only) -> None:
    summary = three(only, found("late-workers", 0.1, headline="two came late"))
    assert "two came late" in findings.text(summary)
    assert "two came late" not in terminal.text(summary)
    assert "two came late" not in markdown.text(summary)


# -- JSON, markdown, HTML -----------------------------------------------------------------


def test_json_has_the_documented_fields_in_order(only: Only) -> None:
    only(rule("a", [found("a", 5.4, 6.0, stage=None, evidence={"x": float("nan"), "n": 1})]))
    [first] = json.loads(document.text(made()))["findings"]
    assert first == {
        "rule": "a",
        "severity": "serious",
        "headline": "a is slow",
        "stage": None,
        "cost_s": 6.0,
        "saving_s": [5.4, 6.0],
        "evidence": {"x": None, "n": 1},
        "where": {
            "file": "/home/u/etl.py",
            "line": 41,
            "variable": "lookup",
            "layer": "map_partitions-1a2b",
            "prefix": "map_partitions",
        },
        "fix": {
            "text": "Load it in the task.",
            "code": "import dask\n\n@dask.delayed\ndef load():\n    return 1",
        },
        "link": "https://github.com/stageprof/stageprof/blob/main/docs/findings.md#a",
    }


def test_what_is_innocent_has_one_name_on_every_face(only: Only) -> None:
    """In the terminal, as markdown, in a notebook and in the app."""
    summary = three(only)
    recording = made(Path("etl.stageprof").absolute(), expr=0.2, tokenize=1.0)
    said = "Optimizing graphs costs at most"

    for shown in (
        findings.text(summary),
        markdown.text(summary),
        notebook.html(summary),
        html("cards", app="app", **overview.findings(recording, summary)),
    ):
        title = shown.index("Not your problem")
        assert title < shown.index(said)
        assert "Not the cause" not in shown


def test_markdown_has_findings_best_first_with_their_code_in_fences(only: Only) -> None:
    tokens = parsed(markdown.text(three(only)))
    heads = [tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "heading_open"]
    assert heads[1].startswith("1. serious: `lookup`, a DataFrame of 182 MB")
    assert heads[2] == "2. moderate: 120,000 tasks of 0.4 ms"
    fences = [t for t in tokens if t.type == "fence"]
    assert fences[0].info == "python"
    assert fences[0].content == "import dask\n\n@dask.delayed\ndef load():\n    return 1\n"
    links = [t.attrs["href"] for t in tokens if t.type == "link_open"]
    assert links
    assert all(str(link).startswith("https://github.com/stageprof/") for link in links)


def test_notebook_has_a_card_for_each_finding_and_the_best_one_open(only: Only) -> None:
    html = notebook.html(three(only))
    page = Page(html)
    assert page.open == []
    assert page.tags == OURS
    assert page.names == NAMES
    assert html.count('<details class="stageprof-card"') == 3
    assert html.count(" open>") == 1
    assert ">import dask\n\n@dask.delayed" in html
    assert "saves <b>5.4-6.1 s</b>" in html


def test_names_in_a_card_are_code_and_no_backtick_is_shown(only: Only) -> None:
    named = replace(found("late-workers", 0.7), headline="`a<b>` waits", fix=Fix("Cut `a<b>`."))
    card = notebook.html(three(only, named))
    assert "<code>a&lt;b&gt;</code> waits" in card
    assert "Cut <code>a&lt;b&gt;</code>." in card
    odd = notebook.html(three(only, replace(named, headline="one ` is left", fix=Fix(""))))
    assert "one ` is left" in odd


def test_notebook_shows_ten_cards_and_counts_the_rest(only: Only) -> None:
    html = notebook.html(three(only, *(found("late-workers", 0.7) for _ in range(9))))
    top, details = html.split('<summary style="cursor:pointer">Details')
    assert top.count('<details class="stageprof-card"') == 3
    assert details.count('<details class="stageprof-card"') == 7
    assert "(3 of 12)" in top
    assert "2 more: findings()" in html


@pytest.mark.parametrize(
    ("headline", "where", "shown"),
    [
        ("Reads one file at a time", Where(), "Reads one file at a time"),
        ("`x` made at e.py:4, used at e.py:41", Where("e.py", 4), "`x`, used at e.py:41"),
        ("`x` at e.py:4 is large", Where("e.py", 4), "`x` is large"),
    ],
)
def test_only_the_place_of_a_finding_is_left_out_of_its_headline(
    headline: str, where: Where, shown: str
) -> None:
    finding = found("embedded-object", 1.0, 2.0, headline=headline, where=where)
    assert findings._brief(finding, 60) == shown
