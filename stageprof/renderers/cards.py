"""Findings as cards of a notebook, on any ground.

A notebook that is not trusted is shown without what might act, so each card brings its style with
it and takes the colours of text and ground from around it. Only the button to copy code acts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from stageprof_collectors.findings.evidence import places, shown
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.innocence import TITLE
from stageprof_collectors.findings.phrase import worth
from stageprof_collectors.summary import Summary
from stageprof_collectors.text import safe
from stageprof_ui.palette import SEVERITY_COLOURS

#: Cards at the top, and in all; `findings()` has every one.
TOP: Final = 3
MOST: Final = 10
#: Characters of a text or a line of code that are shown.
_MOST: Final = 2000

#: A ground that is a little darker than a light one and a little lighter than a dark one.
GROUND: Final = "background:rgba(127,127,127,0.12)"
_CARD: Final = f"{GROUND};border-radius:4px;padding:6px 12px;margin:6px 0"
_PILL: Final = "color:#ffffff;border-radius:3px;padding:1px 6px;font-size:85%"
#: One click selects all of it.
_PRE: Final = (
    f"{GROUND};color:inherit;padding:6px 8px;margin:0;overflow:auto;white-space:pre;user-select:all"
)
#: The button is seen only where it still has what it does: where scripts were taken away, so was
#: this. Its word is no text of the page, so none is left where the button itself was taken away.
SHEET: Final = (
    "<style>.stageprof-copy[onclick]{display:inline-block!important}"
    ".stageprof-copy::before{content:attr(data-said)}</style>"
)
#: `navigator.clipboard` is not there when the notebook comes over plain HTTP from elsewhere.
COPY: Final = (
    "getSelection().selectAllChildren(this.previousElementSibling);"
    "this.dataset.said=document.execCommand('copy')?'Copied':'Press Ctrl+C'"
)
_COPY: Final = (
    '<button type="button" class="stageprof-copy" data-said="Copy" aria-label="Copy the code" '
    f'onclick="{COPY}" style="display:none;margin-top:4px"></button>'
)


def top(summary: Summary) -> str:
    """The best findings, the first one open; or that there is nothing to change."""
    found = summary.changes
    if not found:
        return f"<div><b>{_sentence(summary.verdict)}</b></div>"
    more = f" ({TOP} of {len(found)})" if len(found) > TOP else ""
    cards = (_card(f, summary.wall_s, first=f is found[0]) for f in found[:TOP])
    return f"<div><b>What to change</b>{more}</div>{''.join(cards)}"


def more(summary: Summary) -> str:
    """The next ones, and what is innocent."""
    found: Sequence[Finding] = summary.changes
    cards = [_card(f, summary.wall_s) for f in found[TOP:MOST]]
    if found[MOST:]:
        cards.append(f"<div>{len(found) - MOST} more: findings()</div>")
    if summary.innocents:
        cards.append(f"<div><b>{TITLE}</b></div>")
    return "".join(cards) + "".join(f"<div>{_sentence(s)}</div>" for s in summary.innocents)


def notes(summary: Summary) -> str:
    """What is true but saves little, the first ones; closed."""
    return "".join(_card(f, summary.wall_s) for f in summary.notes[:MOST])


def _card(found: Finding, wall_s: float, *, first: bool = False) -> str:
    return (
        f'<details class="stageprof-card" style="{_CARD}"{" open" if first else ""}>'
        f"{''.join(_card_parts(found, wall_s))}</details>"
    )


def _card_parts(found: Finding, wall_s: float) -> Iterator[str]:
    pill = f"background:{SEVERITY_COLOURS[found.severity][0]};{_PILL}"
    before, saving, after = map(_text, worth(found, wall_s).sentence)
    yield (
        f'<summary style="cursor:pointer"><span style="{pill}">{found.severity}</span> '
        f"{_sentence(found.headline)}: {before}<b>{saving}</b>{after}</summary>"
    )
    yield f'<div style="margin-top:6px">{_sentence(found.fix.text)}</div>'
    if found.fix.code.strip():
        pre = f'<pre style="{_PRE}">{_code(found.fix.code)}</pre>'
        yield f'<div style="margin:6px 0">{pre}{_COPY}</div>'
    rows = [(name, _text(value)) for name, value in places(found)]
    yield _table([*rows, *shown(found.evidence, "html")])
    link = safe(found.link, "html", limit=_MOST)
    yield (
        f'<div><a href="{link}" rel="noopener noreferrer" style="color:inherit">'
        f"{safe(found.rule, 'html')}</a></div>"
    )


def _table(rows: list[tuple[str, str]]) -> str:
    cell = '<td style="text-align:left;padding:1px 12px 1px 0">'
    cells = (f"<tr>{cell}{name}</td>{cell}{value}</td></tr>" for name, value in rows)
    return f'<table style="margin:4px 0">{"".join(cells)}</table>' if rows else ""


def _text(text: str) -> str:
    return safe(text, "html", limit=_MOST)


def _sentence(text: str) -> str:
    return safe(text, "sentence", limit=_MOST)


def _code(code: str) -> str:
    return "\n".join(_text(line) for line in code.strip("\n").split("\n"))


__all__ = ["COPY", "GROUND", "SHEET", "more", "notes", "top"]
