"""Bokeh figures whose content our own script draws: the same live, in a report and a notebook."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from bokeh.models import (
    BasicTickFormatter,
    BoxSelectTool,
    ColumnDataSource,
    CustomJS,
    FixedTicker,
    Model,
    PanTool,
    Range1d,
    WheelZoomTool,
)
from bokeh.models.widgets import Div

from stageprof_ui import browser
from stageprof_ui.columns.lines import Line
from stageprof_ui.columns.sent import Sent
from stageprof_ui.far import Far, conversation
from stageprof_ui.figure import bare

#: Pixels of a line of full height, at least, and what the axis takes.
_LINE_PX, _AXIS_PX = 22, 90
#: Beyond this the lines get thinner instead.
_HIGHEST_PX: Final = 900


@dataclass
class Chosen:
    """What a reader has set in the controls of the time line, for when it is made anew."""

    search: str = ""
    #: of the three ways to colour
    colours: int = 0
    #: whether processes are folded; None where nobody chose
    folded: bool | None = None
    #: the story of what was clicked
    told: str = ""
    #: what dragging does: it moves, or sums up
    drag: int = 0


@dataclass(frozen=True)
class Stock:
    """What the figures of one app share: boxes, tables, the span of time that all show."""

    #: of the app, for pages with several
    name: str
    source: ColumnDataSource
    tables: ColumnDataSource
    stories: ColumnDataSource
    x_range: Range1d
    #: who is asked for boxes that are too many to be sent
    far: Far | None = None
    #: whether a server is there to be asked for more
    served: bool = False
    chosen: Chosen = field(default_factory=Chosen)
    #: our script, for pages that do not hold it
    library: ColumnDataSource = field(
        default_factory=lambda: ColumnDataSource(data={"code": [browser.body()]})
    )

    @classmethod
    def of(
        cls, name: str, sent: Sent, end_s: float, far: Far | None = None, *, served: bool = False
    ) -> Stock:
        """The stock of a recording of `end_s` seconds; `far` if its boxes stay here."""
        end = max(end_s, 1e-6)
        return cls(
            name,
            ColumnDataSource(data=sent.boxes),
            ColumnDataSource(data={"tables": [sent.tables]}),
            ColumnDataSource(data=sent.stories),
            Range1d(start=0, end=end, bounds=(-0.05 * end, 1.05 * end)),
            far,
            served,
        )

    def keep(self, model: Model, attribute: str, name: str) -> None:
        """Set an attribute of a control to what was chosen, and follow what is chosen in it."""
        if (known := getattr(self.chosen, name)) is not None:
            setattr(model, attribute, known)
        if self.served:  # elsewhere nothing is heard of it
            follow = functools.partial(setattr, self.chosen, name)
            model.on_change(attribute, lambda _attribute, _old, new: follow(new))


@dataclass(frozen=True)
class Drawn:
    """A figure and the way to speak to what draws it."""

    plot: Any
    #: where the story of a task and the sums of a rectangle are told
    told: Div
    #: the tools that dragging can be: one that moves, one that selects
    drags: list[Any]
    stock: Stock
    args: dict[str, Any]

    def call(self, code: str, **more: Any) -> CustomJS:
        """A callback in which `d` is the drawing (`browser/drawing.js`)."""
        got = ", ".join(self.args)
        head = f"const d = S.drawing({json.dumps(self.stock.name)}, {{{got}}});\n"
        return CustomJS(args=self.args | more, code=browser.PRELUDE + head + code)


def drawn(
    stock: Stock,
    lines: Sequence[Line],
    *,
    label: str,
    folded: Sequence[Line] = (),
    mode: str = "",
    height: int = 0,
) -> Drawn:
    """A figure of some lines.

    Args:
        stock: what the figures of an app share.
        lines: what to show, the first at the top.
        label: what it shows, for those who cannot see it.
        folded: other lines of the same, which `d.fold(true)` shows instead.
        mode: "layer", "stage" or "gil" colours it so always; "" as the app's colours are chosen.
        height: pixels; 0 is as high as the lines need.
    """
    total = max(sum(line.height for line in lines), 0.01)
    plot = bare(
        label,
        x_range=stock.x_range,
        y_range=Range1d(start=0, end=total),
        height=height or min(_HIGHEST_PX, round(total * _LINE_PX) + _AXIS_PX),
        output_backend="canvas",
    )
    # A server need not be told of every picture that the browser draws.
    image = ColumnDataSource(
        data={name: [] for name in ("image", "x", "y", "dw", "dh")}, syncable=False
    )
    plot.image_rgba("image", "x", "y", "dw", "dh", source=image)
    told = Div(sizing_mode="stretch_width", disable_math=True, stylesheets=[browser.view_style()])
    drags = _tools(plot)
    _axes(plot)
    args = _args(plot, stock, image, [lines, folded], mode) | {"told": told}
    whole = Drawn(plot, told, drags, stock, args)
    _listen(whole)
    return whole


def _args(
    plot: Any, stock: Stock, image: ColumnDataSource, both: Sequence[Sequence[Line]], mode: str
) -> dict[str, Any]:
    texts = [json.dumps([asdict(line) for line in lines]) for lines in both]
    more = (
        dict(zip(("asked", "answered"), conversation(stock.far), strict=True)) if stock.far else {}
    )
    return more | {
        "figure": plot,
        "image": image,
        "source": stock.source,
        "tables": stock.tables,
        "stories": stock.stories,
        "lines": ColumnDataSource(data={"lines": texts, "mode": [mode, mode]}),
        "library": stock.library,
    }


def _listen(whole: Drawn) -> None:
    plot, redraw = whole.plot, whole.call("S.soon(d);")
    for model in (plot.x_range, plot.y_range):
        model.js_on_change("start", redraw)
        model.js_on_change("end", redraw)
    for name in ("inner_width", "inner_height"):
        plot.js_on_change(name, redraw)
    if answered := whole.args.get("answered"):
        answered.js_on_change("data", whole.call("d.answer(answered.data);"))
    plot.js_on_event("mousemove", whole.call("d.hover(cb_obj);"))
    plot.js_on_event("mouseleave", whole.call("d.leave();"))
    plot.js_on_event("tap", whole.call("d.tap(cb_obj);"))
    plot.js_on_event("selectiongeometry", whole.call("d.rectangle(cb_obj);"))


def _tools(plot: Any) -> list[Any]:
    wheel, pan, box = (
        WheelZoomTool(dimensions="width"),
        PanTool(dimensions="width"),
        BoxSelectTool(),
    )
    tall = WheelZoomTool(dimensions="height", modifiers={"shift": True})
    plot.toolbar.tools = [pan, wheel, tall, box]
    plot.toolbar.active_scroll, plot.toolbar.active_drag = wheel, pan
    return [pan, box]


def _axes(plot: Any) -> None:
    plot.yaxis.ticker = FixedTicker(ticks=[])
    plot.yaxis.major_tick_line_alpha = plot.yaxis.axis_line_alpha = 0
    plot.xaxis.formatter = BasicTickFormatter(use_scientific=False)
    plot.ygrid.visible = False
    plot.xaxis.axis_label = "seconds since the start"
    plot.xaxis.axis_label_text_font_style = "normal"
