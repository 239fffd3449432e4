"""No text of a finding acts on whoever reads it, in any form."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import stageprof
from findings.conftest import Only
from findings.made import found, made, rule
from findings.pages import NAMES, OURS, Page, parsed
from stageprof.renderers import document, findings, markdown, notebook, terminal
from stageprof_collectors.findings.finding import Fix, Where
from stageprof_collectors.summary import summarize
from stageprof_collectors.text import safe

HOSTILE = (
    "<img src=x onerror=alert(1)></pre><script>",
    "\x1b]0;owned\x07\x1b[31mred\x9b31m\r",
    "\u202egnp.exe\u2066\u200b\U000e0041",
    "two\nlines\n```\n# heading\n\n- item",
    "`code` ``` ```` fence",
    "a|b|c",
    "@team [link](javascript:alert(1)) https://evil.example www.evil.example <!-- -->",
    "lone \ud800 surrogate",
    "[red]markup[/red] :smile: **bold** _it_",
    "&lt;b&gt; &#x1b;",
)


def active(text: str) -> set[str]:
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return {c for c in text if unicodedata.category(c) in kinds and c != "\n"}


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest, only: Only) -> stageprof.Recording:
    text: str = request.param
    bad = found(
        "a",
        5.0,
        headline=text,
        evidence={text: text, "n": 1},
        fix=Fix(text, text),
        where=Where(text, 3, text, text, text),
        documentation="https://" + text,
    )
    only(rule("a", [bad]), rule("b", [found("b", 4.0)]))
    return made()


def test_hostile_findings_print_no_active_character(hostile: stageprof.Recording) -> None:
    """B6, T17: in every form."""
    summary = summarize(hostile)
    for text in (
        terminal.text(summary),
        findings.text(summary),
        markdown.text(summary),
        notebook.html(summary),
        document.text(hostile),
    ):
        assert active(text) == set()
    assert max(map(cell_len, terminal.text(summary).splitlines())) <= 80


def test_hostile_findings_are_nothing_but_text_in_markdown(hostile: stageprof.Recording) -> None:
    """B6, T16: no link, no mention, no HTML."""
    tokens = parsed(markdown.text(summarize(hostile)))
    kinds = {t.type for t in tokens}
    words = " ".join(t.content for t in tokens if t.type == "text")
    assert not kinds & {"html_inline", "html_block", "image", "strong_em", "em_open", "hr"}
    assert "@" not in words
    assert "://" not in words
    assert "www." not in words
    assert len([t for t in tokens if t.type == "fence"]) == 2
    assert len([t for t in tokens if t.type == "heading_open"]) == 3


def test_hostile_findings_are_nothing_but_text_in_html(hostile: stageprof.Recording) -> None:
    """B6: no tag of theirs."""
    page = Page(notebook.html(summarize(hostile)))
    assert page.open == []
    assert page.tags == OURS
    assert page.names == NAMES
    assert page.links
    assert all(str(link).startswith("https://") for link in page.links)


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_prose_is_nothing_but_text_and_code(text: str) -> None:
    tokens = parsed(f"x {safe(text, 'prose')} y")
    kinds = {t.type for t in tokens}
    assert kinds <= {"inline", "paragraph_open", "paragraph_close", "text", "code_inline"}
    words = " ".join(t.content for t in tokens if t.type == "text")
    assert not set("@>[]*_#&!|\\`") & set(words)
    assert "//" not in words


@pytest.mark.parametrize("word", ["GH-26", "(gh-1", "GL-26", "x/GH-26", "%26", '%"next"', "%v1.0"])
def test_prose_refers_to_nothing_of_whoever_reads_it(word: str) -> None:
    """A pull request was linked from the issue whose number a task's name said so."""
    assert safe(f"a {word} b", "prose") == f"a `{word}` b"


def test_prose_keeps_sentences_and_names_readable() -> None:
    text = "`lookup`, a DataFrame (182 MB), is in map_partitions: 6.1 s."
    assert safe(text, "prose") == text.replace("map_partitions", "`map_partitions`")
    for plain in ("47 ms (<1 %)", "50% (12%/s), 7%.", "high-1 and ugh", "8.79 s · 2 workers"):
        assert safe(plain, "prose") == plain
