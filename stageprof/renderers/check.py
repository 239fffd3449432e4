"""A check-up for a terminal, as markdown and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TextIO

from rich.text import Text

from stageprof.renderers import document, findings, findings_markdown, notebook
from stageprof.renderers.page import heading, plain, printed, prose
from stageprof_collectors.text import safe

if TYPE_CHECKING:
    from stageprof.checked import Checked

#: The name of the JSON form and its version, as in docs/json.md.
SCHEMA: Final = "stageprof.check/1"
#: Characters of one thing that was not looked at.
_MOST: Final = 300


def show(checked: Checked, file: TextIO | None = None) -> None:
    """Print every finding in full, and what was not looked at."""
    printed(_lines(checked), file or sys.stdout)


def text(checked: Checked) -> str:
    """The same without colours."""
    return plain(_lines(checked))


def _lines(checked: Checked) -> Iterator[Text]:
    yield from findings.lines(checked.summary)
    if not checked and checked.findings:
        yield Text()
        yield heading(safe(checked.summary.verdict))
    if checked.not_looked_at:
        yield Text()
        yield heading("Not looked at")
        for what in checked.not_looked_at:
            yield prose(Text("  - "), safe(what, limit=_MOST), 4)


def html(checked: Checked) -> str:
    """The card of a notebook."""
    unseen = (f"Not looked at: {what}" for what in checked.not_looked_at)
    return notebook.checked(checked.summary, tuple(unseen))


def markdown(checked: Checked) -> str:
    """GitHub-flavoured markdown."""
    summary = checked.summary
    lines = [f"### stageprof check: {safe(summary.label, 'markdown')}", ""]
    lines += [safe(" · ".join(summary.facts), "prose"), *findings_markdown.lines(summary)]
    lines += findings_markdown.notes(summary)
    if checked.not_looked_at:
        lines += ["", "Not looked at:", ""]
        lines += [f"- {safe(what, 'prose', limit=_MOST)}" for what in checked.not_looked_at]
    return "\n".join(lines) + "\n"


def json_text(checked: Checked) -> str:
    """One object in strict JSON."""
    found = checked.found
    whole: dict[str, Any] = {
        "schema": SCHEMA,
        "graphs": found.graphs,
        "tasks": found.tasks,
        "stopped_at": found.stopped,
        "looked_s": found.seconds,
        "predicted_from": found.source,
        "findings": [document.finding(f) for f in found.findings],
        "not_looked_at": checked.not_looked_at,
    }
    return json.dumps(document.plain(whole), indent=2, allow_nan=False) + "\n"
