"""Everything before the first task: the way of the graphs, what made them, what is in them."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import panel as pn
from bokeh.models import ColumnDataSource, CustomJS, Range1d
from bokeh.models.widgets import RadioButtonGroup

from stageprof_runtime.stage import Stage
from stageprof_ui import browser
from stageprof_ui.canvas import Stock
from stageprof_ui.columns import handover
from stageprof_ui.figure import bare
from stageprof_ui.palette import STAGE_COLOURS
from stageprof_ui.store import Store
from stageprof_ui.views.hover import hover
from stageprof_ui.views.html import html
from stageprof_ui.views.table import Column, table

_NOTHING: Final = "No graph was made or handed over in this recording."
_GRAPHS: Final = (
    Column("line", "handed over at", width=220),
    Column("start_s", "at", "seconds", "since the start of the run"),
    Column("first_task_s", "to first task", "seconds", "from the call to the start of a task"),
    Column("graph_tasks", "tasks in it", "count", "when the scheduler had taken it"),
    Column("tasks", "tasks run", "count", "those that it led to; others had been run before"),
    Column("graph_bytes", "size", "size", "of the graph as bytes; - on a local scheduler"),
)
_LINES: Final = (
    Column("made at", "line", width=220),
    Column("layers", "layers", "count"),
    Column("tasks", "tasks", "count"),
    Column("construction_s", "construction", "seconds", "work to make its collections", 128),
    Column("optimization_s", "optimization", "seconds", "work to rewrite and shrink them", 128),
    Column(
        "before_first_task_s",
        "before 1st task",
        "seconds",
        "what you waited for it until then",
        120,
    ),
)
_OBJECTS: Final = (
    Column("variable", "variable", width=130),
    Column("made at", "made at", width=130),
    Column("type", "type", width=140),
    Column("bytes", "size", "size", "of one copy"),
    Column("copies", "copies", "count", "in the graph"),
    Column("tasks", "tasks", "count", "that held it"),
    Column("moved_bytes", "moved", "size", "in the graph, and inside tasks to workers"),
    Column("total_s", "seconds", "seconds", "all that follow together"),
    Column("dump_s", "dump", "seconds", "pickled by the client, with the graph"),
    Column("load_s", "load", "seconds", "unpickled by the scheduler"),
    Column("task_dump_s", "task dump", "seconds", "pickled by the scheduler, with tasks"),
    Column("task_load_s", "task load", "seconds", "unpickled by workers"),
    Column("how", "held as", width=180),
    Column("layer", "layer", width=260),
)
#: What a treemap can show: a column, and what it is called.
_WEIGHTS: Final = (("moved_bytes", "bytes moved"), ("total_s", "seconds of pickling"))
#: Height of a treemap of few objects, and of one of many.
_FEW, _FEW_PX, _MANY_PX = 4, 140, 320
_TOLD: Final = [
    ("", "variable"), ("type", "type"), ("size of one", "held"), ("copies", "copies"),
    ("moved", "moved"), ("took", "took"), ("made at", "made_at"),
]  # fmt: skip


def view(store: Store, stock: Stock) -> pn.Column:
    """The way first, then the graphs, the lines and passes that made them, and objects in them."""
    way, graphs = store.made(handover.way), store.made(handover.graphs)
    lines = store.made(handover.lines)
    if not way["steps"] and not len(graphs) and not len(lines):
        return pn.Column(html("empty", {"text": _NOTHING}), sizing_mode="stretch_width")
    return pn.Column(
        html("handover", way),
        *_graphs(graphs),
        *_lines(lines),
        html("handover_optimization", store.made(handover.optimization)),
        *_objects(store.made(handover.objects), stock),
        sizing_mode="stretch_width",
    )


def _graphs(found: pd.DataFrame) -> list[Any]:
    shown = found.head(handover.ROWS)
    facts = {"rows": len(shown), "left_out": len(found) - len(shown)}
    return [html("handover_graphs", facts), *([table(shown, _GRAPHS)] if len(shown) else [])]


def _lines(found: pd.DataFrame) -> list[Any]:
    shown = html("handover_lines", handover.bars(found))
    return [shown, *([table(found.head(handover.ROWS), _LINES)] if len(found) else [])]


def _objects(found: pd.DataFrame, stock: Stock) -> list[Any]:
    shown = found.head(handover.ROWS)
    drawn = min(len(found), handover.OBJECTS)
    facts = {
        "rows": len(shown),
        "left_out": len(found) - len(shown),
        "drawn": drawn,
        "drawn_out": len(shown) - drawn,
    }
    if not len(found):
        return [html("handover_objects", facts)]
    return [html("handover_objects", facts), *_treemap(found, stock), table(shown, _OBJECTS)]


# -- the treemap ----------------------------------------------------------------------------------

#: Texts no wider than their rectangles; run whenever those change.
_FIT: Final = """
const [width, height, d] = [figure.inner_width, figure.inner_height, shown.data];
const cut = (text, i, room) => {
  const n = Math.floor(((d.right[i] - d.left[i]) * width - 10) / 7);
  const high = (d.top[i] - d.bottom[i]) * height >= room;
  return n < 3 || !high ? "" : text.length > n ? `${text.slice(0, n - 1)}…` : text;
};
shown.data = {
  ...d,
  first: Array.from(d.variable, (text, i) => cut(text, i, 22)),
  second: Array.from(d[second], (text, i) => cut(text, i, 42) === text ? text : ""),
};
"""


def _treemap(found: pd.DataFrame, stock: Stock) -> list[Any]:
    """The objects as rectangles, by one weight or the other."""
    frames = [handover.treemap(found, by) for by, _ in _WEIGHTS]
    every = [_source(frame) for frame in frames]
    shown = _source(frames[0])
    plot = bare(
        "Objects inside graphs by what they take; the table below has the same", axes=False,
        x_range=Range1d(start=0, end=1), y_range=Range1d(start=0, end=1),
        height=_FEW_PX if len(found) < _FEW else _MANY_PX,
    )  # fmt: skip
    glyphs = plot.quad(
        "left", "right", "bottom", "top", source=shown, line_color="#1b1b1b", line_width=1,
        fill_color=STAGE_COLOURS[Stage.SERIALIZATION],
    )  # fmt: skip
    for column, offset, weight in (("first", 5, "bold"), ("second", 23, "normal")):
        plot.text(
            "left", "top", column, source=shown, x_offset=5, y_offset=offset, text_baseline="top",
            text_color="#1b1b1b", text_font_size="12px", text_font_style=weight,
        )  # fmt: skip
    hover(plot, glyphs, stock, _TOLD)
    return [_switch(plot, shown, every), plot]


def _switch(plot: Any, shown: ColumnDataSource, every: list[ColumnDataSource]) -> Any:
    """Chooses what the areas are, and keeps the texts as long as there is room."""
    switch = RadioButtonGroup(
        labels=[name for _, name in _WEIGHTS], active=0, stylesheets=[browser.view_style()]
    )
    args = {"figure": plot, "shown": shown, "every": every, "active": switch}
    second = 'const second = ["moved", "took"][active.active];\n'
    plot.js_on_change("inner_width", CustomJS(args=args, code=second + _FIT))
    change = "shown.data = {...every[active.active].data};\n"
    switch.js_on_change("active", CustomJS(args=args, code=change + second + _FIT))
    return switch


def _source(frame: pd.DataFrame) -> ColumnDataSource:
    columns = {str(name): frame[name].to_list() for name in frame}
    blank = [""] * len(frame)
    return ColumnDataSource(data={**columns, "first": blank, "second": blank})
