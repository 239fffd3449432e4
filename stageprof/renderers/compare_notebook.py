"""A comparison as HTML for a notebook; it takes its colours of text and ground from there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stageprof_collectors.comparison import sentences
from stageprof_collectors.comparison.comparison import Compared
from stageprof_collectors.comparison.counts import Judged
from stageprof_collectors.comparison.times import TimeChange
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.text import safe
from stageprof_runtime.stage import Stage
from stageprof_ui.palette import STAGE_COLOURS

#: Recordings left out that are named.
_MOST: Final = 10
_CELL = "text-align:left;padding:2px 12px 2px 0"
_NUMBER = "text-align:right;padding:2px 12px 2px 0"


def html(found: Compared) -> str:
    """The comparison in HTML: no scripts, nothing fetched."""
    return "<div>" + "".join(_parts(found)) + "</div>"


def _parts(found: Compared) -> Iterator[str]:
    yield f"<b>stageprof compare</b> {_text(found.program)}"
    yield f"<div>{_text(sentences.sides(found))}</div>"
    for name, side in (("baseline", found.baseline), ("candidate", found.candidate)):
        for file, why in side.left_out[:_MOST]:
            yield f"<div>{_text(sentences.left_out(name, file, why))}</div>"
        if more := len(side.left_out[_MOST:]):
            yield f"<div>and {more:,} more</div>"
    for each in found.differences:
        values = f"{'; '.join(each.before)} -> {'; '.join(each.after)}"
        yield f"<div><b>{each.kind} differs:</b> {_text(values)}</div>"
    yield f"<div><b>{_text(sentences.verdict(found))}</b></div>"
    if said := sentences.unjudged(found):
        yield f"<div>{_text(said)}</div>"
    yield from (f"<div>{_text(sentences.blamed(blame))}</div>" for blame in found.blames)
    longest = max((max(t.before_s, t.after_s) for t in found.times[1:]), default=0.0) or 1.0
    rows = [_row(t, longest) for t in found.times[1:] if t.before_s or t.after_s]
    yield f'<table style="margin:8px 0">{"".join(rows)}{_row(found.wall, 0.0)}</table>'
    yield from _lists(found)


def _row(change: TimeChange, longest: float) -> str:
    """Two bars, one above the other, and the numbers."""
    bars = ""
    if longest:
        colour = STAGE_COLOURS[Stage(change.name)]
        for value, part in ((change.before_s, 0.5), (change.after_s, 1.0)):
            width = round(value / longest * 220)
            bars += (
                f'<div style="background:{colour};opacity:{part};width:{width}px;'
                'height:7px;margin:1px 0"></div>'
            )
    word = sentences.word(change)
    said = f"<b>{word}</b>" if word == "slower" else word
    return (
        f'<tr><td style="{_CELL}">{change.name}</td>'
        f'<td style="{_CELL};min-width:220px">{bars}</td>'
        f'<td style="{_NUMBER}">{seconds(change.before_s)}</td>'
        f'<td style="{_NUMBER}">{seconds(change.after_s)}</td>'
        f'<td style="{_NUMBER}">{sentences.by(change)}</td>'
        f'<td style="{_CELL}">{sentences.interval(change)}</td>'
        f'<td style="{_CELL}">{said}</td></tr>'
    )


def _lists(found: Compared) -> Iterator[str]:
    for c in found.counts:
        if c.judged != Judged.UNKNOWN and sentences.shows(c):
            before, after = (sentences.spread(c, side) for side in (c.before, c.after))
            change = f"{sentences.times_as_many(c)}, {sentences.count_word(c)}"
            said = f"{c.what.title}: {before} -> {after} ({change})"
            yield f"<div>{_text(said)}</div>"
    for f in found.findings:
        unsure = ", not judged" if f.judged == Judged.UNKNOWN else ""
        how = f"new finding{unsure}" if f.came else "gone"
        yield f"<div>{how}, {f.severity}: {_text(f.headline)}</div>"


def _text(value: str) -> str:
    return safe(value, "html", limit=600)
