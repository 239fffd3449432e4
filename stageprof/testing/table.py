"""The table at the end of a pytest run: what each recorded test spent its time on."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stageprof.testing.judgement import Found, TooLong
from stageprof.testing.seen import Seen
from stageprof_collectors.findings.quantity import seconds, share, span
from stageprof_collectors.text import safe
from stageprof_runtime.stage import Stage
from stageprof_ui.palette import STAGE_COLOURS

#: How many stages are named where there is room, and the share from which one is.
_NAMED: Final = 2
#: Columns from which a terminal has room for the range and for several stages.
_WIDE: Final = 110
_WORTH: Final = 0.05


class Row(NamedTuple):
    """A test or a block of it; nothing but numbers and texts, for xdist's workers send it."""

    block: str
    runs: int
    #: median, least and most
    wall_s: float
    least_s: float
    most_s: float
    #: medians of the shares of the wall time, by the names of stages
    shares: dict[str, float]
    #: what exceeded its limit
    over: str = ""
    #: why it was not recorded, or not judged
    problem: str = ""


def row(block: str, runs: Sequence[Seen], over: Sequence[TooLong | Found]) -> Row:
    """What is told of some recordings, of which there is one at least."""
    walls = [run.wall_s for run in runs]
    shares = {
        str(stage): median(run.stages[stage] / run.wall_s if run.wall_s else 0.0 for run in runs)
        for stage in Stage
    }
    said = ", ".join(dict.fromkeys(map(_over, over)))
    return Row(safe(block), len(runs), median(walls), min(walls), max(walls), shares, said)


def lost(problem: str) -> Row:
    """What is told of a test that was not recorded."""
    return Row("", 0, math.nan, math.nan, math.nan, {}, problem=safe(problem, limit=300))


def _over(what: TooLong | Found) -> str:
    if isinstance(what, Found):
        return safe(what.finding.rule)
    return str(what.stage or "wall time")


def show(reports: Sequence[pytest.TestReport], terminal: pytest.TerminalReporter) -> None:
    """Write the table below the tests' results."""
    colour = bool(terminal.hasmarkup)
    out = io.StringIO()
    console = Console(
        file=out, width=max(terminal._tw.fullwidth, 60), force_terminal=colour,
        color_system="standard" if colour else None, highlight=False, markup=False, emoji=False,
    )  # fmt: skip
    console.print(_table(reports, wide=console.width >= _WIDE))
    terminal.section("stageprof")
    for line in out.getvalue().rstrip("\n").splitlines():
        terminal.write_line(line.rstrip())
    folder = terminal.config.option.stageprof
    if folder:
        terminal.write_line(f"recordings: {safe(_near(folder), limit=500)}; stageprof show FILE")


def _near(folder: str) -> str:
    """The folder as one would type it here."""
    near = os.path.relpath(folder)
    return folder if near.startswith("..") else near


def _table(reports: Sequence[pytest.TestReport], *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("wall", "runs", *["range"] * wide):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("most of it", no_wrap=True)
    table.add_column("test", overflow="fold")
    for report in sorted(reports, key=lambda report: report.nodeid):
        for line in (Row(*line) for line in getattr(report, "stageprof", ())):
            table.add_row(*_cells(report, line, wide=wide))
    return table


def _cells(report: pytest.TestReport, line: Row, *, wide: bool) -> Iterator[str | Text]:
    yield from (seconds(line.wall_s), str(line.runs))
    if wide:
        yield span(line.least_s, line.most_s) if line.runs > 1 else ""
    yield _most(line.shares, _NAMED if wide else 1)
    test = Text(safe(report.nodeid, limit=300))
    if line.block:
        test.append(f" {line.block}", style="italic")
    if line.over:
        test.append(f"\nover: {line.over}", style="bold red")
    elif report.outcome == "failed":
        test.append("\nfailed", style="bold red")
    if line.problem:
        test.append(f"\nnot recorded: {line.problem}", style="bold red")
    yield test


def _most(shares: dict[str, float], at_most: int) -> Text:
    """The stages that took most, each in its colour."""
    order = sorted(Stage, key=lambda stage: -shares.get(stage, 0.0))
    named = [stage for stage in order[:at_most] if shares.get(stage, 0.0) >= _WORTH] or order[:1]
    parts = [Text(f"{s} {share(shares[s])}", style=STAGE_COLOURS[s]) for s in named if shares]
    return Text(", ").join(parts)
