"""The summary and a comparison on terminals that are narrower than a page, or wider."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

import stageprof
from compare.made import DUMP, against, runs
from stageprof.renderers import compare_terminal, page, terminal
from stageprof_collectors.comparison import sentences
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.summary import Summary

GOLDEN = Path(__file__).parents[1] / "data" / "golden-1.3.stageprof"


@pytest.fixture(scope="module")
def summary() -> Summary:
    return stageprof.open(GOLDEN).summary


def printed(summary: Summary, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return on_terminal(terminal.show, summary, width, monkeypatch)


def on_terminal(
    show: Callable[..., None], what: Any, width: int, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    file = io.StringIO()
    narrow = Console(
        file=file, width=width, force_terminal=True, color_system=None, highlight=False
    )
    monkeypatch.setattr(page, "console", lambda _: narrow)
    show(what, file)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80])
def test_numbers_stay_however_narrow(
    summary: Summary, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(summary, width, monkeypatch)
    fits = [line for line in lines if "stageprof show" not in line and "stageprof app" not in line]
    assert max(map(cell_len, fits)) <= width
    for stage in summary.stages:
        [line] = [line for line in lines if line.startswith(f"  {stage.stage} ")]
        assert line.endswith(share(stage.share))
        assert seconds(stage.wall_s) in line
    for layer in summary.layers[:2]:
        tail = f" {count(layer.tasks, 'task')} {seconds(layer.wall_s):>10}"
        assert any(line.endswith(tail) for line in lines)
    assert sum(line.endswith("saves no time") for line in lines) == 3
    assert summary.coverage.split()[-1] in " ".join(lines)


@pytest.mark.parametrize("width", [40, 80])
def test_a_heading_is_bold_at_every_width(width: int) -> None:
    file = io.StringIO()
    shown = Console(file=file, width=width, force_terminal=True, color_system="standard")
    page._print(shown, [page.heading("Where the time went", "share")])
    assert file.getvalue().startswith("\x1b[1mWhere the time went")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_what_is_read_is_wrapped_once(
    summary: Summary, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that another follows has no room for its first word."""
    coverage = "many words of what was seen and of what was lost " * 2
    lines = printed(replace(summary, coverage=coverage.strip(), gil=""), width, monkeypatch)
    at = next(i for i, line in enumerate(lines) if line.startswith("Coverage"))
    said = [lines[at]]
    while not lines[at + len(said)].startswith(("Next", "Missing", "Problem")):
        said.append(lines[at + len(said)])
    assert " ".join(line[12:] for line in said) == coverage.strip()
    for line, after in pairwise(said):
        assert cell_len(line) + 1 + len(after.split()[0]) > min(width, page.READABLE)


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    assert page.wrapped("costs 58 % of 2 things", 8) == ["costs", "58 % of", "2 things"]
    assert page.wrapped("日本日本 1.91 s", 6) == ["日本日", "本", "1.91 s"]


def test_a_wide_terminal_has_room_for_names(
    summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, line = "a_layer_" + "x" * 45, "a_script_with_a_long_name.py:4711"
    named = replace(summary, layers=(replace(summary.layers[0], layer=name, line=line),))
    assert not any(name in shown for shown in printed(named, 80, monkeypatch))
    wide = printed(named, 200, monkeypatch)
    assert max(map(cell_len, wide)) <= page.WIDEST
    assert any(name in shown and "long_name.py:4711" in shown for shown in wide)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_comparison_keeps_its_numbers_however_narrow(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = against(runs(seed=1), runs(seed=2, more={DUMP: 0.5}))
    lines = on_terminal(compare_terminal.show, found, width, monkeypatch)
    assert max(map(cell_len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("Where the time")) :]
    for change in found.times[1:]:
        if change.before_s or change.after_s:
            ratio = sentences.by(change)
            [line] = [line for line in table if line.startswith(f"  {change.name} ")]
            after = table[table.index(line) + 1]
            assert line.endswith(seconds(change.before_s))
            assert f"{seconds(change.after_s)} {ratio}" in " ".join(after.split())
            assert sentences.interval(change) in words
    for count_ in filter(sentences.shows, found.counts):
        assert sentences.times_as_many(count_) in words
    for blame in found.blames:
        for part in (*blame.steps[:2], *blame.layers[:2]):
            assert sentences.signed(part.change_s) in words


@pytest.mark.parametrize("face", ["summary", "comparison"])
def test_only_bars_have_the_colours_of_stages_for_text_must_be_read_on_any_ground(
    face: str, summary: Summary
) -> None:
    compared = against(runs(seed=1), runs(seed=2, more={DUMP: 0.5}))
    lines = terminal.lines(summary) if face == "summary" else compare_terminal.lines(compared)
    file = io.StringIO()
    page._print(Console(file=file, width=80, force_terminal=True, color_system="truecolor"), lines)
    coloured = re.findall(r"38;2;\d+;\d+;\d+m([^\x1b]*)", file.getvalue())
    assert coloured
    assert not any(char.isalpha() for text in coloured for char in text)
