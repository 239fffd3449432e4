"""No text of a recording acts on whoever reads it, in any form of output."""

from __future__ import annotations

import csv
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

import stageprof
from findings.pages import NAMES, OURS, Page
from stageprof.cli import main
from stageprof.export.perfetto import write as perfetto
from stageprof_collectors.findings.finding import DOCUMENTATION
from stageprof_collectors.text import safe

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


def active(text: str) -> set[str]:
    """Characters that act: all controls but newline and tab, and those that reorder or hide.

    And codes that are no characters, of which XML forbids some.
    """
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    acting = {c for c in text if unicodedata.category(c) in kinds and c not in "\n\t"}
    return acting | {c for c in text if ord(c) & 0xFFFE == 0xFFFE or "\ufdd0" <= c <= "\ufdef"}


def flat(tokens: list[Token]) -> list[Token]:
    return [t for token in tokens for t in (token, *flat(token.children or []))]


def parsed(markdown: str) -> list[Token]:
    return flat(MarkdownIt("commonmark").enable("table").parse(markdown))


@given(ANY_TEXT)
def test_safe_text_is_one_line_without_active_characters(text: str) -> None:
    """B6, T17: of any text whatever."""
    assert active(safe(text)) == set()
    assert "\n" not in safe(text)
    assert "\t" not in safe(text)
    safe(text).encode()


@given(ANY_TEXT, st.integers(2, 200))
def test_safe_text_is_no_longer_than_allowed(text: str, limit: int) -> None:
    assert len(safe(text, limit=limit)) <= limit


@given(ANY_TEXT)
def test_markdown_text_is_nothing_but_code(text: str) -> None:
    """B6, T16: of any text whatever."""
    tokens = parsed(f"x {safe(text, 'markdown')} y")
    kinds = {t.type for t in tokens}
    assert kinds == {"paragraph_open", "paragraph_close", "inline", "text", "code_inline"}


def test_ordinary_text_stays_as_it_is() -> None:
    assert safe("('sum-abc', 0) naïve 日本") == "('sum-abc', 0) naïve 日本"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\x1b[31m", "a\\x1b[31m"), ("\u202e", "\\u202e"), ("\U000e0041", "\\U000e0041")],
)
def test_active_characters_are_shown_by_their_number(text: str, shown: str) -> None:
    assert safe(text) == shown


@pytest.mark.parametrize(
    "args", [("show",), ("show", "--json"), ("show", "--markdown"), ("inspect",)]
)
def test_commands_print_no_active_character(
    args: tuple[str, ...], hostile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([args[0], str(hostile), *args[1:]]) == 0
    out, err = capsys.readouterr()
    assert active(out) == set()
    assert err == ""


def test_json_of_a_hostile_recording_is_strict(
    hostile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    main(["show", "--json", str(hostile)])
    json.loads(capsys.readouterr().out, parse_constant=refuse)


def test_markdown_of_a_hostile_recording_has_no_html_link_or_mention(hostile: Path) -> None:
    tokens = parsed(stageprof.open(hostile)._repr_markdown_())
    kinds = {t.type for t in tokens}
    words = " ".join(t.content for t in tokens if t.type == "text")

    assert not kinds & {"html_inline", "html_block", "image"}
    links = [str(t.attrs["href"]) for t in tokens if t.type == "link_open"]
    assert all(link.startswith(DOCUMENTATION) for link in links)
    assert "@" not in words
    assert "://" not in words
    assert "code_inline" in kinds


def test_markdown_table_keeps_its_columns_whatever_the_keys(hostile: Path) -> None:
    lines = stageprof.open(hostile)._repr_markdown_().splitlines()
    start = lines.index("| slowest layer | wall | tasks | made at |")
    rows = [line.replace("\\|", "") for line in lines[start : start + 5]]
    assert {row.count("|") for row in rows} == {5}


def test_html_of_a_hostile_recording_has_only_our_own_tags(hostile: Path) -> None:
    html = stageprof.open(hostile)._repr_html_()
    page = Page(html)

    assert page.tags <= OURS
    assert page.names <= NAMES
    assert active(html) == set()


def test_csv_of_a_hostile_recording_holds_no_control_and_no_formula(
    hostile: Path, tmp_path: Path
) -> None:
    assert main(["export", str(hostile), "--to", "csv", "-o", str(tmp_path / "out")]) == 0
    for file in (tmp_path / "out").iterdir():
        text = file.read_text()
        assert active(text) == set()
        cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
        assert not [c for c in cells if c[:1] in tuple("=@") or c.startswith("+")]


def test_trace_of_a_hostile_recording_holds_no_control(hostile: Path, tmp_path: Path) -> None:
    perfetto(stageprof.open(hostile), tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text()
    assert active(text) == set()
    json.loads(text)
