"""Findings as cards for a notebook, on light and on dark ground, without a script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stageprof_collectors.evidence import places, shown
from stageprof_collectors.finding import Finding
from stageprof_collectors.phrase import worth
from stageprof_collectors.summary import Summary
from stageprof_collectors.text import safe
from stageprof_ui.palette import SEVERITY_COLOURS

#: Cards that are shown; `findings()` has all.
TOP: Final = 10
#: Characters of a text or a line of code that are shown.
_MOST: Final = 2000

_LIGHT: Final = "background:#f5f5f5;color:#1b1b1b"
_DARK: Final = "background:#232323;color:#ececec"


def style() -> str:
    """The style of the cards: their ground is their own, so that they are read on any other."""
    light = "".join(f".stageprof-{s}{{color:{c[0]}}}" for s, c in SEVERITY_COLOURS.items())
    dark = "".join(f".stageprof-{s}{{color:{c[1]}}}" for s, c in SEVERITY_COLOURS.items())
    return (
        "<style>"
        ".stageprof-card{padding:8px 14px;margin:8px 0;border-radius:4px;" + _LIGHT + "}"
        ".stageprof-card td{text-align:left;padding:1px 12px 1px 0}"
        ".stageprof-card pre{padding:6px;margin:6px 0;overflow:auto;color:inherit;"
        "background:rgba(127,127,127,.15)}"
        ".stageprof-card a{color:inherit}"
        f"{light}"
        f"@media (prefers-color-scheme:dark){{.stageprof-card{{{_DARK}}}{dark}}}"
        "</style>"
    )


def html(summary: Summary) -> str:
    """The best findings, and what is innocent."""
    return "".join(_parts(summary))


def _parts(summary: Summary) -> Iterator[str]:
    found = summary.changes
    if found:
        yield style()
        yield "<div><b>What to change</b></div>"
        yield from (_card(finding, summary.wall_s) for finding in found[:TOP])
    else:
        yield f"<div><b>{safe(summary.verdict, 'html')}</b></div>"
    if found[TOP:]:
        yield f"<div>{len(found) - TOP} more: findings()</div>"
    for sentence in summary.innocents:
        yield f"<div>{safe(sentence, 'html')}</div>"


def _card(found: Finding, wall_s: float) -> str:
    return f'<div class="stageprof-card">{"".join(_card_parts(found, wall_s))}</div>'


def _card_parts(found: Finding, wall_s: float) -> Iterator[str]:
    severity = f'<b class="stageprof-{found.severity}">{found.severity}</b>'
    yield f"<div>{severity} {_text(found.headline)}</div>"
    before, saving, after = map(_text, worth(found, wall_s).sentence)
    yield f"<div>{before}<b>{saving}</b>{after}</div>"
    rows = [(name, _text(value)) for name, value in places(found)]
    yield _table([*rows, *shown(found.evidence, "html")])
    yield f"<div>{_text(found.fix.text)}</div>"
    if found.fix.code.strip():
        yield f"<pre>{_code(found.fix.code)}</pre>"
    link = safe(found.link, "html", limit=_MOST)
    yield f'<div><a href="{link}" rel="noopener noreferrer">{safe(found.rule, "html")}</a></div>'


def _table(rows: list[tuple[str, str]]) -> str:
    cells = (f"<tr><td>{name}</td><td>{value}</td></tr>" for name, value in rows)
    return f"<table>{''.join(cells)}</table>" if rows else ""


def _text(text: str) -> str:
    return safe(text, "html", limit=_MOST)


def _code(code: str) -> str:
    return "\n".join(_text(line) for line in code.strip("\n").split("\n"))
