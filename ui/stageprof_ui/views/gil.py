"""The GIL: who held it, who waited for it, and when it was taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd
import panel as pn

from stageprof_collectors.findings.innocence import without_gil
from stageprof_collectors.recording import Recording
from stageprof_ui.canvas import Stock
from stageprof_ui.columns import gil, profiles
from stageprof_ui.columns.series import Samples, Series
from stageprof_ui.store import Store
from stageprof_ui.views.curves import Curves, choice, chooser, curves, pens
from stageprof_ui.views.html import html
from stageprof_ui.views.table import Column, table
from stageprof_ui.words import text

#: Rows of a table; the costliest.
MOST: Final = 5_000
#: Two thirds and one third of a wide page; below each other on a narrow one.
_BESIDE: Final = (
    ":host { display: grid !important; gap: 0 28px; grid-template-columns: minmax(0, 1fr); }"
    "@media (min-width: 1250px)"
    " { :host { grid-template-columns: minmax(0, 2.1fr) minmax(0, 1fr); } }"
    # what a grid moves to the next sheet is drawn over what is there
    "@media print { :host { display: block !important; } }"
)


@dataclass(frozen=True)
class Lines:
    """The lines of the processes, and the buttons that choose among them."""

    buttons: Any
    roles: list[str]


@dataclass(frozen=True)
class Parts:
    """What the page has of the GIL.

    Attributes:
        who: what is to blame, then holders and waiters beside each other.
        when: how often it was taken over time.
        lines: those of `when`, if there are any.
    """

    who: list[Any]
    when: list[Any]
    lines: Lines | None = None


def parts(store: Store, stock: Stock, samples: Samples) -> Parts:
    """All that there is, or why there is nothing."""
    recording, said = store.recording, store.summary.gil
    found, series = store.made(Recording.gil), profiles.contention(samples)
    if without_gil(recording) or (not len(found) and not series):
        return Parts([html("gil_none", {"text": text(gil.missing(recording, said))})], [])
    facts = {
        "verdict": text(gil.verdict(said)),
        "sources": [text(sentence) for sentence in gil.sources(recording, samples, found)],
    }
    return Parts(
        [html("gil", facts), *_who(store, samples, found)], *_over_time(stock, samples, series)
    )


# -- who ------------------------------------------------------------------------------------------


def _who(store: Store, samples: Samples, found: pd.DataFrame) -> list[Any]:
    if not len(found):
        why = gil.missing(store.recording, store.summary.gil, watched=True)
        return [html("gil_empty", {"text": text(why)})]
    found = gil.numbered(store.recording, found)
    why, known = gil.unseen(store.recording, found), gil.lines_known(found)
    held, waited = gil.holders(found, why), gil.waiters(store.recording, found)
    facts = {"left_out": max(0, len(held) - MOST), "why": "" if known else why}
    late = [text(sentence) for sentence in gil.late(store.recording, samples)]
    left = _half("gil_holders", facts, held, _HOLDERS if known else _BY_TASK)
    right = _half("gil_waiters", {"late": late, "nobody": not len(waited)}, waited, _WAITERS)
    return [pn.Column(left, right, sizing_mode="stretch_width", stylesheets=[_BESIDE])]


def _half(
    template: str, facts: dict[str, Any], frame: pd.DataFrame, columns: tuple[Column, ...]
) -> pn.Column:
    shown = [table(frame.head(MOST), columns, page=12)] if len(frame) else []
    return pn.Column(html(template, facts), *shown, sizing_mode="stretch_width")


_HOLDERS: Final = (
    Column("function", "function", width=150),
    Column("at", "line", width=100),
    Column("prefix", "task prefix", width=120),
    Column("caused", "others waited", "seconds", "what all others waited while it held", 84),
    Column("held", "held", "seconds", "time with the GIL", 74),
    Column("waited", "waited", "seconds", "time in the queue for it", 80),
    Column("thread", "thread", width=112),
    Column("place", "process", width=146),
)
#: Where no line is known; what is left has more room.
_WIDER: Final = {"prefix": 220, "thread": 130, "place": 150}
_BY_TASK: Final = tuple(
    replace(column, width=_WIDER.get(column.name, column.width)) for column in _HOLDERS[2:]
)
_WAITERS: Final = (
    Column("who", "task prefix or thread", width=150),
    Column("waited", "waited", "seconds", width=80),
    Column("percent", "of its time (%)", "count", "of its tasks' time, or of the run", 68),
    Column("place", "process", width=146),
)

# -- over time ------------------------------------------------------------------------------------


def _over_time(
    stock: Stock, samples: Samples, series: list[Series]
) -> tuple[list[Any], Lines | None]:
    if not series:
        return [], None
    shown = bool(profiles.drawn(series))
    sentence = profiles.of_contention(samples, series)
    said = html("gil_time", {"sentence": sentence, "drawn": shown})
    numbers = table(profiles.by_process(samples, series), _PROCESS)
    if not shown:
        return [said, numbers], None
    figures, lines = _lines(stock, samples, series)
    return [said, choice(lines.buttons), *(one.plot for one in figures), numbers], lines


def _lines(stock: Stock, samples: Samples, series: list[Series]) -> tuple[list[Curves], Lines]:
    shown = profiles.drawn(series)
    drawn = [
        replace(pen, label=profiles.called(samples, pen.place, series))
        for pen in pens(samples, [one.place for one in shown])
    ]
    label = "Share of the time in which the GIL of each process was taken"
    figures = [
        curves(stock, drawn, shown, label=label, title="Taken", unit="share", top=1.0, height=200)
    ]
    queue = profiles.waiting(samples, shown)
    if queue:
        top = max(1.0, 1.06 * max(one.peak for one in queue))
        label = "Threads of each process that waited for the GIL, on average"
        title = "Threads that waited, on average"
        figures.append(
            curves(stock, drawn, queue, label=label, title=title, unit="mean", top=top, height=200)
        )
    return figures, Lines(chooser(drawn, figures), [pen.role for pen in drawn])


_PROCESS: Final = (
    Column("process", "process", width=220),
    Column("role", "role", width=90),
    Column("samples", "samples", "count", width=105),
    Column("least", "taken: least (%)", "count", width=140),
    Column("median", "median (%)", "count", width=125),
    Column("most", "most (%)", "count", width=110),
    Column("queue", "waiting threads", "count", "on average over the run", 145),
)
