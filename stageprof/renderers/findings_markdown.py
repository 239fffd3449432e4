"""Findings as GitHub-flavoured markdown, best first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from stageprof_collectors.findings.evidence import places, shown
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.innocence import TITLE
from stageprof_collectors.findings.phrase import worth
from stageprof_collectors.summary import Summary
from stageprof_collectors.text import safe

#: Characters of a text or a line of code that are shown.
_MOST: Final = 2000


def lines(summary: Summary) -> Iterator[str]:
    """The section of findings: those worth acting on, then what is innocent."""
    yield ""
    if not summary.changes:
        yield f"**{_prose(summary.verdict)}**"
    yield from _numbered(summary.changes, summary.wall_s)
    if summary.innocents:
        yield ""
        yield f"#### {TITLE}"
        yield ""
        yield from (f"- {_prose(sentence)}" for sentence in summary.innocents)


def notes(summary: Summary) -> Iterator[str]:
    """The section of what is true but saves little."""
    yield ""
    yield from _numbered(summary.notes, summary.wall_s, after=len(summary.changes))


def _numbered(findings: Iterable[Finding], wall_s: float, after: int = 0) -> Iterator[str]:
    for number, found in enumerate(findings, after + 1):
        yield f"#### {number}. {found.severity}: {_prose(found.headline)}"
        yield ""
        yield from _facts(found, wall_s)
        yield from _fix(found)


def _facts(found: Finding, wall_s: float) -> Iterator[str]:
    before, saving, after = worth(found, wall_s).sentence
    yield f"- {before}**{saving}**{after}; [{found.rule}]({_link(found)})"
    for name, value in places(found):
        yield f"- {name}: {safe(value, 'markdown', limit=_MOST)}"
    evidence = ", ".join(f"{n} {v}" for n, v in shown(found.evidence, "markdown"))
    if evidence:
        yield f"- evidence: {evidence}"


def _fix(found: Finding) -> Iterator[str]:
    yield ""
    yield _prose(found.fix.text)
    yield ""
    if not found.fix.code.strip():
        return
    code = [safe(line, limit=_MOST) for line in found.fix.code.strip("\n").split("\n")]
    longest = max((len(run) for line in code for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}python"
    yield from code
    yield fence
    yield ""


def _link(found: Finding) -> str:
    """Nothing in it ends the link: a blank or a bracket is no part of an address of ours."""
    return re.sub(r"[^A-Za-z0-9:/.#_-]", "", found.link)


def _prose(text: str) -> str:
    return safe(text, "prose", limit=_MOST)
