"""The card of a recording in a notebook, and the line in its place while a cell runs.

It takes its colours of text and ground from around it: it is read in light and dark themes, and on
pages that a notebook was exported to. Nothing is fetched, and nothing acts but the button that
copies code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from stageprof.renderers import cards, terminal
from stageprof.renderers.page import several
from stageprof_collectors.findings.quantity import seconds, share
from stageprof_collectors.storage.collector import Live
from stageprof_collectors.summary import StageLine, Summary
from stageprof_collectors.text import safe
from stageprof_runtime.stage import Stage
from stageprof_ui.palette import STAGE_COLOURS

_CELL: Final = "text-align:left;padding:2px 12px 2px 0"
_NUMBER: Final = "text-align:right;padding:2px 12px 2px 0"
_FRAME: Final = "max-width:960px;line-height:1.5"
_BAR: Final = "display:flex;height:18px;border-radius:3px;overflow:hidden;margin:6px 0"
_SWATCH: Final = "display:inline-block;width:10px;height:10px;border-radius:2px"
#: Shares below this are not named in the legend.
_LEAST: Final = 0.005


def bundle(summary: Summary, notes: tuple[str, ...] = ()) -> dict[str, str]:
    """The card and the summary of a terminal, for one display.

    Args:
        summary: what is shown.
        notes: what else the reader must know, a line each.
    """
    plain = "\n".join([terminal.text(summary), *(safe(note, limit=200) for note in notes)])
    return {"text/html": html(summary, notes), "text/plain": plain}


def html(summary: Summary, notes: tuple[str, ...] = ()) -> str:
    """The card: nothing fetched; links to the documentation only."""
    return _framed(*_parts(summary, notes))


def checked(summary: Summary, notes: tuple[str, ...] = ()) -> str:
    """The card of what was not run: findings, and notes."""
    head = f"<div><b>stageprof check</b> {safe(summary.label, 'html')} · {_facts(summary)}</div>"
    lines = "".join(f"<div>{safe(note, 'html', limit=300)}</div>" for note in notes)
    return _framed(head, cards.top(summary), cards.more(summary), cards.notes(summary), lines)


def _framed(*parts: str) -> str:
    whole = "".join(parts)
    sheet = cards.SHEET if cards.COPY in whole else ""
    return f'{sheet}<div class="stageprof" style="{_FRAME}">{whole}</div>'


def _parts(summary: Summary, notes: tuple[str, ...]) -> Iterator[str]:
    yield f"<div><b>stageprof</b> {safe(summary.label, 'html')} · {_facts(summary)}</div>"
    for line in filter(None, (" · ".join(summary.failures), summary.incomplete)):
        yield f"<div><b>{safe(line, 'html', limit=500)}</b></div>"
    yield _stages(summary)
    for line in (*notes, *summary.problems):
        yield f"<div><b>{safe(line, 'html', limit=300)}</b></div>"
    yield cards.top(summary)
    yield f'<details><summary style="cursor:pointer">Details</summary>{_details(summary)}</details>'
    yield _next(summary.file)


def _facts(summary: Summary) -> str:
    return safe(" · ".join(summary.facts), "html", limit=300)


def _stages(summary: Summary) -> str:
    """One bar for the whole wall time, and what its colours mean."""
    seen = [line for line in summary.stages if line.share > 0]
    if not seen:
        return ""
    legend = "".join(_named(line) for line in seen if line.share >= _LEAST)
    return f'<div style="{_BAR}">{"".join(map(_segment, seen))}</div><div>{legend}</div>'


def _segment(line: StageLine) -> str:
    style = f"width:{min(line.share, 1.0):.2%};background:{STAGE_COLOURS[line.stage]}"
    said = f"{line.stage} {seconds(line.wall_s)}, {share(line.share)}"
    return f'<div title="{safe(said, "html")}" style="{style}"></div>'


def _named(line: StageLine) -> str:
    said = f"{seconds(line.wall_s)}, {share(line.share)}"
    return (
        '<span style="display:inline-block;margin-right:16px;white-space:nowrap">'
        f"{_swatch(line.stage)} {line.stage} {safe(said, 'html')}</span> "
    )


def _swatch(stage: Stage) -> str:
    return f'<span style="{_SWATCH};background:{STAGE_COLOURS[stage]}"></span>'


def _details(summary: Summary) -> str:
    steps = _table(
        _row(f"{s.stage} {s.step}", f"on {s.where}", numbers=(seconds(s.wall_s), share(s.share)))
        for s in summary.steps
    )
    layers = _table(
        _row(r.layer, r.line or "line unknown", numbers=(f"{r.tasks:,} tasks", seconds(r.wall_s)))
        for r in summary.layers
    )
    gil = (f"GIL: {summary.gil}",) if summary.gil else ()
    missing = (f"Missing: {several(summary.missing, 280)}",) if summary.missing else ()
    said = (*gil, summary.coverage, *missing)
    lines = (f"<div>{safe(line, 'html', limit=300)}</div>" for line in said)
    return "".join((cards.more(summary), steps, layers, *lines))


def _table(rows: Iterable[str]) -> str:
    return f'<table style="margin:8px 0">{"".join(rows)}</table>'


def _row(*texts: str, numbers: tuple[str, ...]) -> str:
    cells = [f'<td style="{_CELL}">{safe(t, "html")}</td>' for t in texts]
    cells += [f'<td style="{_NUMBER}">{safe(t, "html")}</td>' for t in numbers]
    return f"<tr>{''.join(cells)}</tr>"


def _next(file: str) -> str:
    """The way to the app."""
    code = f"stageprof app {terminal.typed(file)}" if file else "rec = %stageprof last"
    how = "in a terminal" if file else "then rec.app() here, or rec.show() in a browser"
    return f"<div>All pages: <code>{safe(code, 'html', limit=300)}</code> {how}</div>"


def live(now: Live, elapsed_s: float) -> dict[str, str]:
    """How far a run is, for the display that the card will take."""
    stage, (known, _, done) = now.stage, now.tasks
    tasks = f"{done:,} of {known:,} tasks" if known else ""
    said = " · ".join(filter(None, (f"stageprof {stage}", tasks, seconds(elapsed_s))))
    part = min(done / known, 1.0) if known else 0.0
    bar = f"width:{part:.1%};height:4px;background:{STAGE_COLOURS[stage]}"
    ground = f"{cards.GROUND};border-radius:2px;margin:4px 0"
    lines = (
        f"<div>{_swatch(stage)} {said}</div>",
        f'<div style="{ground}"><div style="{bar}"></div></div>',
    )
    return {"text/html": _framed(*lines), "text/plain": said}


__all__ = ["bundle", "checked", "html", "live"]
