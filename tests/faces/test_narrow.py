"""The summary on a terminal that is narrower than a page."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

import stageprof
from stageprof.renderers import page, terminal
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.summary import Summary

GOLDEN = Path(__file__).parents[1] / "data" / "golden-1.3.stageprof"


@pytest.fixture(scope="module")
def summary() -> Summary:
    return stageprof.open(GOLDEN).summary


def printed(summary: Summary, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    file = io.StringIO()
    narrow = Console(
        file=file, width=width, force_terminal=True, color_system=None, highlight=False
    )
    monkeypatch.setattr(page, "console", lambda _: narrow)
    terminal.show(summary, file)
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
        tail = f"{count(layer.tasks, 'task'):>15} {seconds(layer.wall_s):>10}"
        assert any(line.endswith(tail) for line in lines)
    assert sum(line.endswith("saves no time") for line in lines) == 3
    assert summary.coverage.split()[-1] in " ".join(lines)


@pytest.mark.parametrize("width", [40, 80])
def test_a_heading_is_bold_at_every_width(width: int) -> None:
    file = io.StringIO()
    shown = Console(file=file, width=width, force_terminal=True, color_system="standard")
    page._print(shown, [page.heading("Where the time went", "share")])
    assert file.getvalue().startswith("\x1b[1mWhere the time went")
