"""Findings for a terminal: the best three in a line each, or every one in full."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import partial
from typing import Final, TextIO

from rich.cells import cell_len
from rich.text import Text

from stageprof.renderers.page import (
    WIDEST,
    WIDTH,
    Row,
    column,
    ending,
    heading,
    plain,
    printed,
    prose,
    red,
    row,
    whole,
)
from stageprof_collectors.findings.evidence import places, shown
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.innocence import TITLE
from stageprof_collectors.findings.phrase import at, worth
from stageprof_collectors.findings.quantity import count, span
from stageprof_collectors.summary import Summary
from stageprof_collectors.text import safe
from stageprof_ui.palette import SEVERITY_STYLES

#: How many findings a summary names.
TOP: Final = 3
#: Cells that the longest severity takes with the blanks around it, and at most a file and line.
_SEVERITY, _LINE = 11, 20
#: Cells in which a headline still says something.
_SHORTEST: Final = 8
#: The left edge of what is said of a finding, and of what each part of it says.
_EDGE, _INNER = 3, 13
#: A line of code, or a text of a finding, in characters; more is nobody's to read.
_MOST: Final = 2000


def top(summary: Summary) -> Iterator[Text]:
    """What to change first, in at most four lines; or one that says that nothing is."""
    found = summary.changes
    if not found:
        yield heading(safe(summary.verdict, limit=WIDTH))
        return
    more = f"{TOP} of {len(found)}" if len(found) > TOP else ""
    yield heading("What to change", more)
    wheres = [ending(_line(f), _LINE) for f in found[:TOP]]
    savings = [f"saves {span(*f.saving_s)}" for f in found[:TOP]]
    wide, long = max(map(cell_len, wheres)), max(map(len, savings))
    for finding, where, saving in zip(found, wheres, savings, strict=False):
        head = Text(f"  {finding.severity:<9}", style=SEVERITY_STYLES[finding.severity])
        middle = partial(_what, finding, where, wide)
        yield Row(head, middle, WIDTH - _SEVERITY - long - 2, f"  {saving:>{long}}")


def _what(found: Finding, where: str, wide: int, cells: int) -> Text:
    """The headline and its line; where there is room for one only, the line."""
    room = cells - wide - 2 if wide else cells
    if where and room < _SHORTEST:
        return Text(column(ending(where, cells), cells), style="default")
    tail = f"  {column(where, wide)}" if wide else ""
    return Text(column(_brief(found, room), room) + tail, style="default")


def _brief(found: Finding, room: int) -> str:
    """The headline without its place, which has a column of its own; else its rule and of what.

    Half a sentence says less than a name that can be looked up.
    """
    whole = found.headline
    if line := _line(found):
        place = re.compile(rf"( made)? at {re.escape(line)}(?!\d)")
        whole = place.sub("", whole).replace(" ,", ",")
    if cell_len(shown := safe(whole, limit=WIDEST)) <= room:
        return shown
    name = found.where.variable or found.where.prefix
    return safe(f"{found.rule}: `{name}`" if name else found.rule, limit=WIDTH)


def _line(found: Finding) -> str:
    return safe(at(found.where.file, found.where.line))


def show(summary: Summary, file: TextIO | None = None) -> None:
    """Print every finding in full."""
    printed(lines(summary), file or sys.stdout)


def text(summary: Summary) -> str:
    """Every finding in full, without colours."""
    return plain(lines(summary))


def lines(summary: Summary) -> Iterator[Text]:
    """The lines of all findings, each safe to print."""
    yield Text.assemble(("stageprof", "bold"), "  ", safe(summary.label))
    facts = (*summary.facts, count(len(summary.findings), "finding"))
    yield row(facts)
    yield from red(summary.failures, _MOST)
    if summary.incomplete:
        yield _block(Text(), summary.incomplete, 0, style="bold red")
    if not summary.changes and not summary.findings:
        yield Text()
        yield heading(safe(summary.verdict))
    for number, finding in enumerate(summary.findings, 1):
        yield Text()
        yield from _finding(number, finding, summary.wall_s)
    yield from _after(summary)


def _finding(number: int, found: Finding, wall_s: float) -> Iterator[Text]:
    severity = Text(f"{number:<{_EDGE}}{found.severity:<{_INNER - _EDGE}}")
    severity.stylize(f"bold {SEVERITY_STYLES[found.severity]}")
    yield _block(severity, found.headline, _INNER, style="bold")
    amounts = worth(found, wall_s)
    yield from _part("costs", amounts.cost)
    yield from _part("saves", amounts.saving)
    for name, value in places(found):
        yield from _part(name, value)
    evidence = " · ".join(f"{n} {v}" for n, v in shown(found.evidence, "terminal"))
    yield from _part("evidence", evidence)
    yield from _part("do", found.fix.text)
    yield from _code(found.fix.code)
    yield whole(" " * _EDGE + safe(found.link, limit=_MOST), style="dim")
    yield whole(f"{'':{_EDGE}}to leave it out: --rule {found.rule}=off", style="dim")


def _part(name: str, value: str) -> Iterator[Text]:
    if value:
        yield _block(Text(f"{'':{_EDGE}}{name:<{_INNER - _EDGE}}"), value, _INNER)


def _block(head: Text, value: str, indent: int, style: str = "") -> Text:
    """A text below and beside its head."""
    return prose(head, safe(value, limit=_MOST), indent, style)


def _code(code: str) -> Iterator[Text]:
    """As it is, to be copied; only what would act on the terminal is made visible."""
    if not code.strip():
        return
    yield Text()
    for line in code.strip("\n").split("\n"):
        yield whole((" " * (_EDGE + 4) + safe(line, limit=_MOST)).rstrip())
    yield Text()


def _after(summary: Summary) -> Iterator[Text]:
    if summary.innocents:
        yield Text()
        yield heading(TITLE)
        for sentence in summary.innocents:
            yield _block(Text("  "), sentence, 2)
    if summary.off or summary.problems:
        yield Text()
    if summary.off:
        yield _block(Text("Rules off   "), ", ".join(summary.off), 12)
    for problem in summary.problems:
        yield _block(Text("Problem     "), problem, 12, style="bold red")
