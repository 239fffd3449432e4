"""Nothing that a recording holds acts on whoever reads what is said of it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from compare.made import CONDITIONS, COUNTS, JOIN, against, run, runs
from faces.conftest import HOSTILE
from stageprof.renderers import (
    compare_json,
    compare_junit,
    compare_markdown,
    compare_notebook,
    compare_terminal,
)
from stageprof_collectors.comparison.comparison import Compared
from stageprof_collectors.comparison.measured import (
    Cell,
    Found,
    Group,
    Held,
    Measured,
    Place,
    Thing,
)
from stageprof_collectors.findings.finding import Severity
from stageprof_runtime.stage import Stage
from stageprof_ui import words
from stageprof_ui.columns import judgement

ALL = " ".join(HOSTILE)


@pytest.fixture(scope="module")
def found() -> Compared:
    """A comparison whose every text is an enemy's, with something of every kind in it."""
    cell = Cell(Stage.SERIALIZATION, "task.dump", Group(ALL, ALL, 7))
    head = [_hostile(each) for each in runs(seed=2, more={cell: 1.0, JOIN: 0.5})]
    broken = run(incomplete=ALL, file=ALL)
    return against([*runs(seed=1, program=ALL), broken], [*head, broken], force=True)


def _hostile(each: Measured) -> Measured:
    return replace(
        each,
        program=ALL,
        file=ALL,
        conditions=dict.fromkeys(CONDITIONS, ALL),
        counts={**COUNTS, "graph_tasks": 400.0},
        objects={Thing(ALL, ALL, ALL): Held(7, ALL, 1000, 1, 400, 1.0)},
        findings={Place("r", ALL, ALL, ALL): Found(Severity.SERIOUS, ALL, 1.0)},
    )


def test_there_is_something_of_every_kind(found: Compared) -> None:
    assert found.differences
    assert found.findings
    assert found.blames[0].objects
    assert found.baseline.left_out


def active(text: str) -> list[str]:
    """Characters that act on a terminal or reorder what is read."""
    return [c for c in text if (ord(c) < 32 and c != "\n") or c in "\x7f\x9b\u202e\u2066\u200b"]


def test_the_terminal_shows_no_escape(found: Compared) -> None:
    """B6, T17: whatever programs, layers and files are called."""
    assert active(compare_terminal.text(found)) == []


def test_markdown_holds_no_mention_link_or_html(found: Compared) -> None:
    """B6, T16: but between backticks, where it is text."""
    text = compare_markdown.text(found)
    plain = "\n".join(re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", line) for line in text.split("\n"))

    assert active(text) == []
    assert not re.search(r"@team|<img|<!--|\]\(|https?:", plain)
    assert len(text.encode()) < compare_markdown.SIZE


def test_junit_is_xml_whatever_it_says(found: Compared) -> None:
    suite = ET.fromstring(compare_junit.text(found))[0]

    assert active("".join(suite.itertext())) == []
    assert suite.findall(".//failure")


def test_json_is_ascii_and_holds_the_texts_as_they_are(found: Compared) -> None:
    """B6: it is for programs, and strict."""
    text = compare_json.text(found)

    assert text.isascii()
    assert json.loads(text)["program"] == ALL


def test_a_notebook_and_the_page_get_text(found: Compared) -> None:
    page = words.html("compare_judged", **judgement.facts(found))
    for text in (compare_notebook.html(found), page):
        assert "<img" not in text
        assert "<!--" not in text
        assert active(text) == []
