"""What tasks were seen doing, as a flame graph that hangs from the top."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bokeh.models import ColumnDataSource, CustomJS, FixedTicker, PanTool, Range1d
from bokeh.models.widgets import Button, Div, TextInput

from stageprof_ui import browser
from stageprof_ui.canvas import Stock
from stageprof_ui.columns.icicle import ALL, LEVELS, Icicle
from stageprof_ui.figure import bare

#: Pixels of a level, and of the axis.
_LEVEL_PX, _AXIS_PX = 34, 50
_NAMES = ("task", "function", "line", "kind of work")


@dataclass(frozen=True)
class Hanging:
    """A figure of boxes, what is told of a search, and the way to speak to it."""

    plot: Any
    told: Any
    find: Any
    roles: tuple[str, ...]
    _args: Mapping[str, Any]

    def call(self, code: str, **more: Any) -> CustomJS:
        """A callback in which `S.icicle` is our script (`browser/icicle.js`)."""
        return CustomJS(args={**self._args, **more}, code=browser.PRELUDE + code)


def hanging(stock: Stock, all_: Mapping[str, Icicle]) -> Hanging:
    """The figure; it shows all roles at first."""
    first = all_[ALL]
    source = ColumnDataSource(data=first.columns())
    names = ColumnDataSource(data={"x": [], "y": [], "text": [], "colour": []})
    plot = _figure(source, names, max(first.total, 1e-9))
    texts = [json.dumps(one.columns()) for one in all_.values()]
    args = {
        "figure": plot,
        "source": source,
        "names": names,
        "find": TextInput(
            placeholder="task, function or line",
            title="Find",
            width=260,
            stylesheets=[browser.view_style()],
        ),
        "told": Div(text="", disable_math=True, stylesheets=[browser.view_style()]),
        "all": ColumnDataSource(data={"role": list(all_), "boxes": texts}),
        "library": stock.library,
    }
    whole = Hanging(plot, args["told"], args["find"], tuple(all_), args)
    _listen(whole, source)
    return whole


def _figure(source: ColumnDataSource, names: ColumnDataSource, total: float) -> Any:
    plot = bare(
        "What tasks were seen doing, by task, function, line and kind of work",
        x_range=Range1d(start=0, end=total, bounds=(0, total)),
        y_range=Range1d(start=0, end=len(LEVELS)),
        height=len(LEVELS) * _LEVEL_PX + _AXIS_PX,
    )
    plot.quad(
        "left", "right", "top", "bottom", source=source, fill_color="colour", fill_alpha="alpha",
        line_color="#6e6e6e", line_width=0.5, line_alpha="alpha",
    )  # fmt: skip
    plot.text(
        "x", "y", "text", source=names, text_font={"value": "monospace"}, text_font_size="12px",
        text_color="colour", text_baseline="middle",
    )  # fmt: skip
    pan = PanTool(dimensions="width")
    plot.toolbar.tools = [pan]
    plot.toolbar.active_drag = pan
    _axes(plot)
    return plot


def _axes(plot: Any) -> None:
    middles = [len(LEVELS) - 0.5 - depth for depth in range(len(LEVELS))]
    plot.yaxis.ticker = FixedTicker(ticks=middles)
    plot.yaxis.major_label_overrides = dict(zip(middles, _NAMES, strict=True))
    plot.yaxis.major_tick_line_alpha = plot.yaxis.axis_line_alpha = 0
    plot.xgrid.visible = plot.ygrid.visible = False
    plot.xaxis.axis_label = "seconds that tasks were seen in it"
    plot.xaxis.axis_label_text_font_style = "normal"
    plot.axis.major_label_text_font_size = plot.xaxis.axis_label_text_font_size = "11px"


def _listen(whole: Hanging, source: ColumnDataSource) -> None:
    plot, label = whole.plot, whole.call("S.icicle.label(figure, source, names);")
    for name in ("start", "end"):
        plot.x_range.js_on_change(name, label)
    plot.js_on_change("inner_width", label)
    source.js_on_change("data", label)
    plot.js_on_event("tap", whole.call("S.icicle.zoom(figure, source, cb_obj);"))
    plot.js_on_event("mousemove", whole.call("S.icicle.hover(figure, source, cb_obj);"))
    plot.js_on_event("mouseleave", whole.call("S.icicle.leave();"))


def controls(whole: Hanging) -> list[Any]:
    """Search, and the way back from a zoom."""
    sheets: list[Any] = [browser.view_style()]
    found = whole.call("S.icicle.search(source, find.value_input, told);")
    whole.find.js_on_change("value_input", found)
    back = Button(label="show everything", stylesheets=sheets)
    back.js_on_click(whole.call("S.icicle.whole(figure, source);"))
    return [whole.find, back, whole.told]
