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
_CELL: Final = "text-align:left;padding:2px 8px 2px 0"
_NUMBER: Final = "text-align:right;white-space:nowrap;padding:2px 8px 2px 0"
#: The bars take what the numbers leave: a notebook's cell may be as narrow as a telephone.
_TABLE: Final = "margin:8px 0;width:100%;max-width:720px;border-collapse:collapse"
_BARS: Final = f"{_CELL};width:50%;min-width:36px"
_SMALL: Final = "font-size:85%;opacity:.75;white-space:nowrap"


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
    for said in filter(None, (sentences.unjudged(found), sentences.drift(found))):
        yield f"<div>{_text(said)}</div>"
    yield from (f"<div>{_text(sentences.blamed(blame))}</div>" for blame in found.blames)
    longest = max((max(t.before_s, t.after_s) for t in found.times[1:]), default=0.0) or 1.0
    rows = [_row(t, longest) for t in found.times[1:] if t.before_s or t.after_s]
    yield f'<table style="{_TABLE}">{_head()}{"".join(rows)}{_row(found.wall, 0.0)}</table>'
    yield from _lists(found)


def _head() -> str:
    names = ("baseline", "candidate", "change")
    cells = "".join(f'<th style="{_NUMBER};{_SMALL}">{name}</th>' for name in names)
    return f"<tr><th></th><th></th>{cells}</tr>"


def _row(change: TimeChange, longest: float) -> str:
    """Two bars, one above the other, and the numbers."""
    word = sentences.word(change)
    said = f"{word} {sentences.by(change)}".strip()
    said = f"<b>{said}</b>" if word == "slower" else said
    interval = f'<div style="{_SMALL}">{sentences.interval(change)}</div>'
    return (
        f'<tr><td style="{_CELL}">{change.name}</td>'
        f'<td style="{_BARS}">{_bars(change, longest)}</td>'
        f'<td style="{_NUMBER}">{seconds(change.before_s)}</td>'
        f'<td style="{_NUMBER}">{seconds(change.after_s)}</td>'
        f'<td style="{_NUMBER}">{said}{interval}</td></tr>'
    )


def _bars(change: TimeChange, longest: float) -> str:
    """The baseline's, pale, above the candidate's; none of the whole."""
    if not longest:
        return ""
    colour = STAGE_COLOURS[Stage(change.name)]
    style = f"background:{colour};height:7px;margin:1px 0"
    shares = [(change.before_s / longest, 0.5), (change.after_s / longest, 1.0)]
    return "".join(
        f'<div style="{style};opacity:{pale};width:{share:.1%}"></div>' for share, pale in shares
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
