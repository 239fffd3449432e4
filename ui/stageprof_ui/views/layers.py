"""The layers: which needs which, and what each took."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
import panel as pn
from bokeh.models import ColumnDataSource, CustomJS, Range1d, TapTool
from bokeh.models.annotations import LabelSet
from bokeh.models.widgets import RadioButtonGroup
from panel.links import Callback

from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.recording import Recording
from stageprof_runtime.stage import SIX
from stageprof_ui import browser
from stageprof_ui.canvas import Stock
from stageprof_ui.columns import layers
from stageprof_ui.columns.layers import Network
from stageprof_ui.figure import bare
from stageprof_ui.palette import STAGE_COLOURS
from stageprof_ui.store import Store
from stageprof_ui.views.hover import hover
from stageprof_ui.views.html import html
from stageprof_ui.views.table import Column, table

_WHAT: Final = (
    Column("prefix", "layer", "text", "the prefix of its tasks' keys: often the function", 160),
    Column("made at", "made at", width=120),
    Column("tasks", "tasks", "count", width=68),
    Column("wall_s", "waited", "seconds", "what of the wall time it took", 78),
)
_MORE_OF_IT: Final = (
    Column(
        "before_first_task_s", "before 1st", "seconds",
        "what of the wait passed before the first task", 78,
    ),
    Column("bytes", "results", "size", "bytes of its tasks' results"),
    Column("code", "code", "text", "what stands there; its file was not changed since", 320),
    Column("layer", "name", width=320),
)  # fmt: skip
#: Pixels of the column of a stage, by how long its name is: all six are to be seen.
_STAGE, _LETTER = 42, 7.0
_TOLD: Final = [
    ("", "layer"), ("line", "made at"), ("code", "code"), ("tasks", "how_many"),
    ("waited", "waited"), *((str(stage), str(stage)) for stage in SIX),
]  # fmt: skip

#: Pixels of a node: of one that took nothing, and of the largest beyond that.
_LEAST, _MORE = 9, 33
#: Pixels from a node to the next beside it and below it.
_BESIDE, _BELOW = 150, 88
#: How far above its nodes a line that passes by others is led, in parts of the way between two.
_ABOVE = 0.55
#: The widest line between two nodes, pixels.
_WIDEST = 7
#: Characters of a label, by the room that there is.
_LABEL = 21


def view(store: Store, stock: Stock) -> pn.Column:
    """The picture, and the table of the same below it."""
    found, web = store.made(_both, sources=store.sources)
    shown = found.head(layers.ROWS)
    rows = table(shown, _columns(shown), selectable=True)
    parts: list[Any] = [html("layers", _facts(web))]
    nodes = ColumnDataSource(data=_nodes(web.nodes))
    if len(web.nodes):
        parts += _picture(web, nodes, stock)
    parts.append(html("layers_table", _counts(found, shown)))
    if len(shown):
        _linked(rows, shown["number"].tolist(), nodes, stock)
        parts.append(rows)
    return pn.Column(*parts, sizing_mode="stretch_width")


def _both(recording: Recording, *, sources: bool) -> tuple[pd.DataFrame, Network]:
    found = layers.layers(recording, sources=sources)
    return found, layers.network(recording, found)


def _columns(shown: pd.DataFrame) -> list[Column]:
    """What the table has: the stages, most seconds first, before all that matters less."""
    stages = sorted(SIX, key=lambda stage: -shown[f"{stage}_s"].sum())
    seconds_ = (
        Column(f"{s}_s", str(s), "seconds", "work", round(_STAGE + _LETTER * len(s)))
        for s in stages
    )
    more = (c for c in _MORE_OF_IT if c.name != "code" or shown["code"].any())
    return [*_WHAT, *seconds_, *more]


def _facts(web: Network) -> dict[str, Any]:
    present = set(web.nodes["stage"])
    return {
        "drawn": len(web.nodes),
        "left_out": web.left_out,
        "stages": [str(stage) for stage in SIX if str(stage) in present],
        "dashed": not web.edges["direct"].all(),
    }


def _counts(found: pd.DataFrame, shown: pd.DataFrame) -> dict[str, int]:
    return {
        "layers": int((found["number"] > 0).sum()),
        "rows": len(shown),
        "left_out": len(found) - len(shown),
    }


# -- the picture ----------------------------------------------------------------------------------


def _picture(web: Network, nodes: ColumnDataSource, stock: Stock) -> list[Any]:
    """The nodes and what is between them, and a choice of what their size is."""
    plot = _figure(web)
    plot.bezier(
        "x0", "y0", "x1", "y1", "cx", "cy0", "cx", "cy1", source=ColumnDataSource(data=_edges(web)),
        line_width="width", line_color="#888888", line_alpha=0.55, line_dash="dash",
    )  # fmt: skip
    glyphs = plot.scatter(
        "x", "y", size="by_wall", source=nodes, fill_color="colour", line_color="#888888",
        nonselection_alpha=0.25,
    )  # fmt: skip
    for column, below, size in (("label", "below", "12px"), ("line", "lower", "11px")):
        label = LabelSet(x="x", y="y", text=column, source=nodes, y_offset=below)
        label.text_font_size, label.text_align, label.text_baseline = size, "center", "top"
        plot.add_layout(label)
    hover(plot, glyphs, stock, _TOLD)
    plot.add_tools(TapTool(renderers=[glyphs]))
    # It may be wider than the page: then it moves below the reader's finger.
    moving = pn.Column(
        plot,
        styles={"overflow-x": "auto", "background": "var(--sp-more)"},
        sizing_mode="stretch_width",
    )
    return [_switch(glyphs), moving]


def _switch(glyphs: Any) -> Any:
    switch = RadioButtonGroup(
        labels=["size: waited", "size: work"], active=0, stylesheets=[browser.view_style()]
    )
    code = 'glyphs.glyph.size = {field: ["by_wall", "by_work"][cb_obj.active]};'
    switch.js_on_change("active", CustomJS(args={"glyphs": glyphs}, code=code))
    return switch


def _nodes(nodes: pd.DataFrame) -> dict[str, Any]:
    """What is drawn and told of each node; all of it text but numbers of our own."""
    texts = {str(stage): [seconds(s) if s else "" for s in nodes[f"{stage}_s"]] for stage in SIX}
    wall, work = _sizes(nodes["wall_s"]), _sizes(nodes["busy_s"])
    return {
        "number": nodes["number"].tolist(),
        "x": nodes["x"].tolist(),
        "y": (-nodes["y"]).tolist(),
        "by_wall": wall,
        "by_work": work,
        "below": [-max(pair) / 2 - 3 for pair in zip(wall, work, strict=True)],
        "lower": [-max(pair) / 2 - 18 for pair in zip(wall, work, strict=True)],
        "colour": [_COLOURS[stage] for stage in nodes["stage"]],
        "label": [_cut(prefix) for prefix in nodes["prefix"]],
        "line": [_tail(line) for line in nodes["made at"]],
        "layer": nodes["layer"].tolist(),
        "made at": nodes["made at"].tolist(),
        "code": nodes["code"].tolist(),
        "how_many": [f"{tasks:,}" for tasks in nodes["tasks"]],
        "waited": [seconds(s) for s in nodes["wall_s"]],
        **texts,
    }


_COLOURS: Final = {str(stage): colour for stage, colour in STAGE_COLOURS.items()}


def _sizes(values: pd.Series) -> list[float]:
    """Diameters whose areas are as the values, so that the least can still be seen."""
    shares = np.maximum(values.to_numpy(np.float64), 0)
    most = max(float(shares.max(initial=0)), 1e-12)
    sizes: list[float] = (_LEAST + _MORE * np.sqrt(shares / most)).tolist()
    return sizes


def _cut(text: str) -> str:
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 1]}…"


def _tail(text: str) -> str:
    return text if len(text) <= _LABEL else f"…{text[1 - _LABEL :]}"


def _edges(web: Network) -> dict[str, Any]:
    edges, nodes = web.edges, web.nodes
    source, target = edges["source"].to_numpy(np.int64), edges["target"].to_numpy(np.int64)
    x, y = nodes["x"].to_numpy(np.float64), -nodes["y"].to_numpy(np.float64)
    needs = edges["needs"].to_numpy(np.float64)
    # What passes by other nodes passes above them.
    above = np.where(x[target] - x[source] > 1, _ABOVE, 0.0)
    return {
        "x0": x[source],
        "y0": y[source],
        "x1": x[target],
        "y1": y[target],
        "cx": (x[source] + x[target]) / 2,
        "cy0": y[source] + above,
        "cy1": y[target] + above,
        "width": 1 + (_WIDEST - 1) * np.sqrt(needs / max(needs.max(initial=0), 1.0)),
        "dash": ["solid" if direct else "dashed" for direct in edges["direct"]],
    }


def _figure(web: Network) -> Any:
    wide, high = web.width, web.height
    return bare(
        "Layers and what they need, from left to right; the table below has their seconds",
        axes=False,
        x_range=Range1d(start=-0.5, end=wide - 0.5),
        y_range=Range1d(start=0.3 - high, end=0.5),
        height=_BELOW * high + 20,
        styles={"min-width": f"{_BESIDE * wide}px"},
    )


# -- the selection --------------------------------------------------------------------------------

#: A row was chosen: it is shown everywhere, and forgotten when something else is selected.
_ROW: Final = """
const mine = S.app(app, () => S.tabled(tables, stories)), row = cb_obj.indices[0];
const number = row === undefined ? -1 : Math.min(numbers[row], 65535), before = mine.row ?? -1;
mine.row = number;
nodes.selected.indices = [nodes.data.number.indexOf(numbers[row])].filter((node) => node >= 0);
if (number >= 0) mine.selection.change({ layers: new Set([number]), runs: null });
else if (before >= 0) mine.selection.change({ layers: null });
mine.forget ??= ({ layers }) => {
  if (mine.row < 0 || (layers?.size === 1 && layers.has(mine.row))) return;
  mine.row = -1;
  cb_obj.indices = [];
};
mine.selection.listeners.add(mine.forget);
"""
#: A node was clicked, and its row is chosen; or none, and the row of one no more.
_NODE: Final = """
const node = cb_obj.indices[0], { selected } = rows.source, row = selected.indices[0];
if (node !== undefined) selected.indices = [numbers.indexOf(drawn[node])];
else if (drawn.includes(numbers[row])) selected.indices = [];
"""


def _linked(rows: Any, numbers: list[int], nodes: ColumnDataSource, stock: Stock) -> None:
    """A layer chosen in the table or the picture is chosen in both, and on all other pages."""
    args = {
        "app": stock.name, "numbers": numbers, "nodes": nodes, "tables": stock.tables,
        "stories": stock.stories, "library": stock.library,
    }  # fmt: skip
    Callback(rows, args=args, code={"source.selected.indices": browser.PRELUDE + _ROW})
    chosen: Any = nodes.selected  # a model of Bokeh's will do
    drawn: Any = list(nodes.data["number"])  # not the source: it leads back here
    Callback(
        chosen, args={"rows": rows, "numbers": numbers, "drawn": drawn}, code={"indices": _NODE}
    )
