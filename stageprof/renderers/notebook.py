"""The summary as HTML for a notebook; it takes its colours of text and ground from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stageprof.renderers import cards
from stageprof_collectors.quantity import seconds, share
from stageprof_collectors.summary import StageLine, Summary
from stageprof_collectors.text import safe
from stageprof_ui.palette import STAGE_COLOURS

_CELL = "text-align:left;padding:2px 12px 2px 0"
_NUMBER = "text-align:right;padding:2px 12px 2px 0"


def html(summary: Summary) -> str:
    """The summary in HTML: no scripts, nothing fetched; links to the documentation only."""
    return "<div>" + "".join(_parts(summary)) + "</div>"


def _parts(summary: Summary) -> Iterator[str]:
    yield f"<b>stageprof</b> {safe(summary.label, 'html')}"
    yield f"<div>{safe(' · '.join(summary.facts), 'html')}</div>"
    if summary.incomplete:
        yield f"<div><b>{safe(summary.incomplete, 'html', limit=300)}</b></div>"
    yield cards.html(summary)
    yield _table(map(_stage, summary.stages))
    yield _table(
        _row(f"{s.stage} {s.step}", f"on {s.where}", numbers=(seconds(s.wall_s), share(s.share)))
        for s in summary.steps
    )
    yield _table(
        _row(r.layer, r.line or "line unknown", numbers=(f"{r.tasks:,} tasks", seconds(r.wall_s)))
        for r in summary.layers
    )
    gil = (f"GIL: {summary.gil}",) if summary.gil else ()
    for line in (*gil, summary.coverage, *summary.problems):
        yield f"<div>{safe(line, 'html', limit=300)}</div>"


def _table(rows: Iterable[str]) -> str:
    return f'<table style="margin:8px 0">{"".join(rows)}</table>'


def _row(*texts: str, numbers: tuple[str, ...]) -> str:
    cells = [f'<td style="{_CELL}">{safe(t, "html")}</td>' for t in texts]
    cells += [f'<td style="{_NUMBER}">{safe(t, "html")}</td>' for t in numbers]
    return f"<tr>{''.join(cells)}</tr>"


def _stage(line: StageLine) -> str:
    width = round(min(max(line.share, 0.0), 1.0) * 300)
    bar = f"background:{STAGE_COLOURS[line.stage]};width:{width}px;height:12px"
    return (
        f'<tr><td style="{_CELL}">{line.stage}</td>'
        f'<td style="{_CELL};min-width:300px"><div style="{bar}"></div></td>'
        f'<td style="{_NUMBER}">{seconds(line.wall_s)}</td>'
        f'<td style="{_NUMBER}">{share(line.share)}</td></tr>'
    )
