"""From whom to whom results went: a map of pairs and a table of them."""

from __future__ import annotations

from typing import Any, Final

import panel as pn
from bokeh.models import ColumnDataSource, CustomJS, FixedTicker, Range1d
from bokeh.models.text import PlainText
from bokeh.models.widgets import RadioButtonGroup

from stageprof_collectors.findings.quantity import seconds, size
from stageprof_ui import browser
from stageprof_ui.canvas import Stock
from stageprof_ui.columns.transfers import Matrix, matrix, of_transfers, pairs
from stageprof_ui.figure import bare
from stageprof_ui.store import Store
from stageprof_ui.views.hover import hover
from stageprof_ui.views.html import html
from stageprof_ui.views.table import Column, table

#: Pairs of the table.
MOST: Final = 5_000
#: Pixels of a row of the map, and around it.
_ROW_PX, _AROUND_PX = 24, 150
#: What is told of a pair.
_TOLD: Final = [
    ("from", "from"), ("to", "to"), ("bytes", "size"), ("took", "took"), ("fetches", "fetches"),
]  # fmt: skip
_COLOUR: Final = "#4c82d9"


def transfers(store: Store, stock: Stock, names: dict[str, str]) -> list[Any]:
    """The map and the table; a sentence where nothing went."""
    found = pairs(store.recording, names)
    if not len(found):
        text = "No results went from worker to worker in this recording."
        heading = "Results that went from worker to worker"
        return [html("workers_none", {"heading": heading, "text": text})]
    drawn = matrix(found)
    source = ColumnDataSource(data=_columns(drawn))
    facts = {
        "sentence": of_transfers(found),
        "drawn": len(drawn.names),
        "left_out": drawn.left_out,
        "rows": MOST,
        "rows_left": max(len(found) - MOST, 0),
    }
    return [
        html("workers_transfers", facts),
        pn.FlexBox(_switch(source)),
        _map(stock, drawn, source),
        table(found.head(MOST), _PAIRS),
    ]


def _columns(drawn: Matrix) -> dict[str, list[Any]]:
    cells = drawn.cells
    columns = {name: cells[name].tolist() for name in cells.columns}
    strength = {
        name: [0.08 + 0.92 * part for part in columns.pop(f"{name}_part")]
        for name in ("bytes", "seconds")
    }
    return {
        **columns,
        "by_bytes": strength["bytes"],
        "by_seconds": strength["seconds"],
        "shown": strength["bytes"],
        "size": [size(value) for value in cells["bytes"]],
        "took": [seconds(value) for value in cells["seconds"]],
    }


def _switch(source: ColumnDataSource) -> Any:
    """Whether a cell is as strong as its bytes or as its seconds."""
    group = RadioButtonGroup(
        labels=["bytes", "seconds"], active=0, stylesheets=[browser.view_style()]
    )
    code = (
        "const by = cb_obj.active ? source.data.by_seconds : source.data.by_bytes;\n"
        "source.data = { ...source.data, shown: by };"
    )
    group.js_on_change("active", CustomJS(args={"source": source}, code=code))
    return group


def _map(stock: Stock, drawn: Matrix, source: ColumnDataSource) -> Any:
    n = len(drawn.names)
    plot = bare(
        "Results from each worker (rows) to each other (columns)",
        x_range=Range1d(start=-0.5, end=n - 0.5),
        y_range=Range1d(start=n - 0.5, end=-0.5),
        height=_ROW_PX * n + _AROUND_PX,
        max_width=max(420, 44 * n + 220),
    )
    glyphs = plot.rect(
        "x", "y", 0.94, 0.9, source=source, fill_color=_COLOUR, fill_alpha="shown",
        line_color=_COLOUR, line_alpha=0.35,
    )  # fmt: skip
    names: dict[float | str, Any] = {
        i: PlainText(text=f"…{name[-23:]}" if len(name) > 24 else name)  # names end differently
        for i, name in enumerate(drawn.names)
    }
    for axis in (plot.xaxis, plot.yaxis):
        axis.ticker = FixedTicker(ticks=list(range(n)))
        axis.major_label_overrides = names
        axis.axis_label_text_font_style = "normal"
    plot.xaxis.major_label_orientation = 0.9
    plot.xaxis.axis_label, plot.yaxis.axis_label = "to", "from"
    plot.xgrid.visible = plot.ygrid.visible = False
    hover(plot, glyphs, stock, _TOLD)
    return plot


_PAIRS: Final = (
    Column("from", "from", width=220),
    Column("to", "to", width=220),
    Column("bytes", "bytes", "size"),
    Column("seconds", "took", "seconds", "of all fetches together; they overlap"),
    Column("fetches", "fetches", "count"),
)
