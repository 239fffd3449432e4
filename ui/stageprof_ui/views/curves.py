"""Lines over time, one for each process, and the buttons that show and hide them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import holoviews as hv
import holoviews.plotting.bokeh
import panel as pn
from bokeh.models import (
    BasicTicker,
    CustomJS,
    CustomJSTickFormatter,
    PanTool,
    Range1d,
    WheelZoomTool,
)
from bokeh.models.annotations import Span
from bokeh.models.widgets import Button, CheckboxButtonGroup

from stageprof_ui import browser
from stageprof_ui.canvas import Stock
from stageprof_ui.columns.series import LINES, Samples, Series, Unit, natural
from stageprof_ui.figure import clear

#: Told apart on both themes, three to one against either ground at least.
COLOURS: Final = (
    "#4477aa", "#d5661e", "#228833", "#b04a8f", "#8c7a1f", "#1b8a96",
    "#e0525f", "#7a68c9", "#6b8e23", "#a0622d", "#3b83d6", "#c2557a",
)  # fmt: skip
#: Of what is no worker; told apart by their dashes.
_OTHER: Final = "#828282"
_DASHES: Final = {"client": "dotted", "scheduler": "dashed"}
#: Of a line across.
_THRESHOLD: Final = "#d0454f"


@dataclass(frozen=True)
class Curves:
    """A figure, and for each process that it may show its line, or None."""

    plot: Any
    lines: Sequence[Any]


@dataclass(frozen=True)
class Pen:
    """How a process is drawn, the same in all figures of a page."""

    place: int
    label: str
    role: str
    colour: str
    dash: str


def pens(samples: Samples, places: Sequence[int]) -> list[Pen]:
    """A pen for each of some processes; a worker's colour is its own on every page."""
    colours, found = _colours(samples, places), []
    for place in places:
        role, colour = samples.role(place), colours.get(place, _OTHER)
        found.append(Pen(place, samples.label(place), role, colour, _DASHES.get(role, "solid")))
    return found


def _colours(samples: Samples, places: Sequence[int]) -> dict[int, str]:
    """Of each worker the colour of its number, or the next that no other of these has."""
    everyone = (p for p, process in enumerate(samples.processes) if process.role == "worker")
    order = sorted(everyone, key=lambda place: natural(samples.label(place)))
    number = {place: i for i, place in enumerate(order)}
    found: dict[int, str] = {}
    for place in (place for place in places if place in number):
        own = [COLOURS[(number[place] + i) % LINES] for i in range(LINES)]
        found[place] = next((one for one in own if one not in found.values()), own[0])
    return found


def curves(
    stock: Stock,
    drawn: Sequence[Pen],
    series: Sequence[Series],
    *,
    label: str,
    title: str = "",
    unit: Unit,
    top: float,
    height: int = 190,
) -> Curves:
    """A figure of some series.

    Args:
        stock: what the figures of an app share; its span of time is the figure's.
        drawn: the processes that are drawn, some of which may have no series.
        series: what is drawn.
        label: what the figure shows, for those who cannot see it.
        title: the same where it is read above the figure, if shorter.
        unit: what the values are.
        top: the highest value that is seen at first.
        height: pixels.
    """
    number = {pen.place: i for i, pen in enumerate(drawn)}
    plot = _figure([(one, drawn[number[one.place]]) for one in series], height)
    plot.x_range, plot.y_range = stock.x_range, Range1d(start=0, end=top)
    _look(plot, label, title or label)
    _units(plot, stock, unit)
    found: list[Any] = [None] * len(drawn)
    for one, line in zip(series, plot.renderers, strict=True):
        at = number[one.place]
        found[at], line.name = line, drawn[at].label
    whole = Curves(plot, found)
    _hover(whole, stock, unit)
    return whole


def _figure(series: Sequence[tuple[Series, Pen]], height: int) -> Any:
    """The lines, each under a number: what processes are called is no label of HoloViews."""
    drawn = [
        hv.Curve(one.thinned(), "t", "v", label=f"line {i}").opts(
            color=pen.colour, line_dash=pen.dash, line_width=1.6
        )
        for i, (one, pen) in enumerate(series)
    ]
    whole = hv.Overlay(drawn).opts(
        show_legend=False, responsive=True, height=height, default_tools=[], toolbar=None,
        xlabel="", ylabel="", backend="bokeh",
    )  # fmt: skip
    return hv.render(whole, backend="bokeh")


def _look(plot: Any, label: str, title: str) -> None:
    """As all our figures: no ground of their own, and a name."""
    clear(plot)
    plot.name = label
    plot.title.text, plot.title.text_font_size, plot.title.text_font_style = title, "13px", "normal"
    plot.axis.major_label_text_font_size = "11px"
    plot.axis.minor_tick_line_alpha = 0
    plot.yaxis.axis_line_alpha = plot.yaxis.major_tick_line_alpha = 0
    plot.xgrid.visible, plot.ygrid.visible = False, True
    plot.output_backend = "canvas"
    pan = PanTool(dimensions="width")
    wheel = WheelZoomTool(dimensions="width", modifiers={"ctrl": True})
    plot.toolbar.tools = [pan, wheel]
    plot.toolbar.active_drag, plot.toolbar.active_scroll, plot.toolbar.logo = pan, wheel, None


def _units(plot: Any, stock: Stock, unit: Unit) -> None:
    """Numbers as the rest of the app writes them."""
    if unit == "count":
        plot.yaxis.ticker = BasicTicker(min_interval=1)
    args = {"library": stock.library, "unit": unit}
    code = f"{browser.PRELUDE}return S.curves.written(unit, tick);"
    plot.yaxis.formatter = CustomJSTickFormatter(args=args, code=code)


def _hover(one: Curves, stock: Stock, unit: Unit) -> None:
    """What all lines are at the instant under the pointer."""
    lines = [line for line in one.lines if line is not None]
    args = {"library": stock.library, "unit": unit, "lines": lines, "figure": one.plot}
    code = f"{browser.PRELUDE}S.curves.hover(figure, lines, unit, cb_obj);"
    one.plot.js_on_event("mousemove", CustomJS(args=args, code=code))
    code = f"{browser.PRELUDE}S.curves.leave();"
    one.plot.js_on_event("mouseleave", CustomJS(args={"library": stock.library}, code=code))


def across(one: Curves, value: float) -> None:
    """A line across a figure."""
    one.plot.add_layout(
        Span(location=value, dimension="width", line_color=_THRESHOLD, line_dash="dashed")
    )


# -- buttons --------------------------------------------------------------------------------------


def chooser(drawn: Sequence[Pen], shown: Sequence[Curves]) -> Any:
    """A button for each process, with a piece of its line, that shows and hides it."""
    lines = [
        [line for one in shown if (line := one.lines[i]) is not None] for i in range(len(drawn))
    ]
    buttons = CheckboxButtonGroup(
        labels=[pen.label for pen in drawn], active=list(range(len(drawn))), name="processes",
        stylesheets=[browser.view_style(), _chips(drawn)],
    )  # fmt: skip
    code = (
        "lines.forEach((of, i) => of.forEach((line) => {\n"
        "  line.visible = cb_obj.active.includes(i);\n}));"
    )
    buttons.js_on_change("active", CustomJS(args={"lines": lines}, code=code))
    return buttons


def _chips(drawn: Sequence[Pen]) -> str:
    """Buttons that go on in the next line, each with a piece of its line."""
    rules = [
        f".bk-btn:nth-child({i + 1})::before {{ border-top: 3px {pen.dash} {pen.colour}; }}"
        for i, pen in enumerate(drawn)
    ]
    return (
        ".bk-btn-group { display: flex; flex-wrap: wrap; gap: 4px; }"
        ".bk-btn { border-radius: 4px !important; margin: 0 !important; flex: 0 0 auto; }"
        ".bk-btn:not(.bk-active) { text-decoration: line-through; }"
        '.bk-btn::before { content: ""; display: inline-block; width: 18px;'
        " margin-right: 6px; vertical-align: middle; }" + "".join(rules)
    )


def choice(buttons: Any, *more: Any) -> pn.FlexBox:
    """The buttons of processes, where there are several, and what else is beside them."""
    several = [buttons, *_everyone(buttons)] if len(buttons.labels) > 1 else []
    return pn.FlexBox(*several, *more, gap="6px")


def _everyone(buttons: Any) -> list[Any]:
    """Buttons that show all lines, or none."""
    sheets: list[Any] = [browser.view_style()]
    show, hide = Button(label="all", stylesheets=sheets), Button(label="none", stylesheets=sheets)
    show.js_on_click(CustomJS(args={"b": buttons}, code="b.active = b.labels.map((_, i) => i);"))
    hide.js_on_click(CustomJS(args={"b": buttons}, code="b.active = [];"))
    return [show, hide]


def whole_run(stock: Stock) -> Any:
    """A button that shows all of the time again."""
    button = Button(label="the whole run", stylesheets=[browser.view_style()])
    code = """const { bounds } = x, margin = (bounds[1] - bounds[0]) / 22;
x.setv({ start: bounds[0] + margin, end: bounds[1] - margin });"""
    button.js_on_click(CustomJS(args={"x": stock.x_range}, code=code))
    return button


def grid(figures: Sequence[Any]) -> pn.Column:
    """Figures beside each other as far as there is room."""
    style = (
        ":host { display: grid !important; gap: 4px 24px;"
        " grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); }"
    )
    return pn.Column(*figures, sizing_mode="stretch_width", stylesheets=[style])
