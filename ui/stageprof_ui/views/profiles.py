"""GIL and profiles: who waited for the GIL, and what tasks did on their threads."""

from __future__ import annotations

from typing import Any, Final

import panel as pn
from bokeh.models import CustomJS, NumeralTickFormatter, Range1d
from bokeh.models.text import PlainText
from bokeh.models.widgets import RadioButtonGroup

from stageprof_collectors.findings.quantity import count, seconds
from stageprof_ui import browser
from stageprof_ui.canvas import Stock
from stageprof_ui.columns import icicle, profiles
from stageprof_ui.columns.profiles import BARS, ROLES, Threads
from stageprof_ui.columns.series import Samples
from stageprof_ui.figure import bare
from stageprof_ui.store import Store
from stageprof_ui.views import gil
from stageprof_ui.views.html import html
from stageprof_ui.views.icicle import Hanging, controls, hanging
from stageprof_ui.views.table import Column, table

#: Rows of a table; the costliest.
MOST: Final = 5_000
#: Parts of a task's time: column, text, colour.
_PARTS: Final = (
    ("cpu_s", "on a processor", "#4c82d9"),
    ("gil_s", "waiting for the GIL", "#d73027"),
    ("other_s", "neither: disk, network, locks, a busy machine", "#a8a8a8"),
)
_SEEN: Final = "Up to 20 times a second the stacks of the threads that ran tasks were looked at:"


def view(store: Store, stock: Stock) -> pn.Column:
    """The GIL, roles to choose from, then threads, and what tasks were seen doing."""
    found = gil.parts(store, stock, store.made(Samples))
    below, boxes = _seen(store, stock)
    parts = [*found.who, *_roles(found.lines, boxes), *found.when, *_threads(store), *below]
    return pn.Column(*parts, sizing_mode="stretch_width")


def _roles(lines: gil.Lines | None, boxes: Hanging | None) -> list[Any]:
    """The chooser of a role, where there are several."""
    known = {*(lines.roles if lines else ()), *(boxes.roles if boxes else ())}
    offered = [role for role in ROLES if role in known]
    if len(offered) < 2:
        return []
    labels = ["all processes", *(f"{r}s" if r == "worker" else r for r in offered)]
    group = RadioButtonGroup(
        labels=labels, active=0, name="role", stylesheets=[browser.view_style()]
    )
    names = [icicle.ALL, *offered]
    if lines:
        code = (
            "const role = names[cb_obj.active];\n"
            "b.active = roles.map((r, i) => (role === 'all' || r === role ? i : -1))"
            ".filter((i) => i >= 0);"
        )
        args = {"b": lines.buttons, "roles": lines.roles, "names": names}
        group.js_on_change("active", CustomJS(args=args, code=code))
    if boxes:
        code = "S.icicle.choose(figure, source, all, roles[cb_obj.active], told, find);"
        group.js_on_change("active", boxes.call(code, roles=names))
    return [pn.FlexBox(group)]


# -- threads --------------------------------------------------------------------------------------


def _threads(store: Store) -> list[Any]:
    found = store.made(profiles.threads)
    if not len(found.frame):
        text = "No task was seen on a thread in this recording."
        heading = "What tasks did on their threads"
        return [html("workers_none", {"heading": heading, "text": text})]
    legend = [(c, text) for name, text, c in _PARTS if found.measured or name != "gil_s"]
    facts = {"sentence": profiles.of_threads(found), "legend": legend}
    return [
        html("profiles_threads", facts),
        _bars(found),
        table(found.frame.head(MOST), _THREADS if found.measured else _UNMEASURED),
    ]


def _bars(found: Threads) -> Any:
    """A bar for each prefix with most seconds, the first at the top."""
    frame = found.frame.head(BARS).iloc[::-1]
    shown = [f"{name[:39]}…" if len(name) > 40 else name for name in frame["prefix"]]
    names = [PlainText(text=name) for name in shown]  # Bokeh takes "$$x$$" for a formula
    middles = [i + 0.5 for i in range(len(frame))]
    plot = bare(
        "Run time of tasks by prefix",
        x_range=Range1d(start=0, end=1.02 * max(float(frame["run_s"].max()), 1e-9)),
        y_range=Range1d(start=0, end=len(frame)),
        height=26 * len(frame) + 60,
    )
    left = [0.0] * len(frame)
    for name, _, colour in _PARTS:
        right = [a + b for a, b in zip(left, frame[name], strict=True)]
        plot.hbar(y=middles, left=left, right=right, height=0.72, color=colour)
        left = right
    plot.yaxis.ticker = middles
    plot.yaxis.major_label_overrides = dict(zip(middles, names, strict=True))
    plot.yaxis.major_tick_line_alpha = plot.yaxis.axis_line_alpha = 0
    plot.ygrid.visible = False
    plot.xaxis.axis_label, plot.xaxis.axis_label_text_font_style = "seconds of tasks", "normal"
    plot.axis.major_label_text_font_size = plot.xaxis.axis_label_text_font_size = "11px"
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0.[00]")
    return plot


_UNMEASURED: Final = (
    Column("prefix", "task prefix", width=240),
    Column("tasks", "tasks", "count"),
    Column("run_s", "ran", "seconds", "time of its functions on their threads"),
    Column("cpu_s", "processor", "seconds", "time in which the thread used a processor", 120),
    Column("other_s", "neither", "seconds", "disk, network, locks, a busy machine"),
)
_THREADS: Final = (
    *_UNMEASURED[:4],
    Column("gil_s", "GIL wait", "seconds", "time in which it waited for the GIL", 110),
    *_UNMEASURED[4:],
)

# -- what tasks were seen doing -------------------------------------------------------------------


def _seen(store: Store, stock: Stock) -> tuple[list[Any], Hanging | None]:
    found = store.made(icicle.looks)
    found = found[found["seconds"] > 0]
    if not len(found):
        text = "No task ran long enough to be looked at, or none in a process that is looked at."
        heading = "What tasks were seen doing"
        return [html("workers_none", {"heading": heading, "text": text})], None
    all_ = icicle.icicles(found)
    whole = all_[icicle.ALL]
    boxes = hanging(stock, all_)
    looks = count(int(found["looks"].sum()), "look")
    facts = {
        "sentence": f"{_SEEN} {looks}, which stand for {seconds(whole.total)}.",
        "legend": icicle.LEGEND,
        "left_out": whole.left_out,
    }
    parts = [
        html("profiles_seen", facts),
        pn.FlexBox(*controls(boxes), align_items="end", gap="10px"),
        boxes.plot,
        table(icicle.lines(found).head(MOST), _LOOKS),
    ]
    return parts, boxes


_LOOKS: Final = (
    Column("prefix", "task prefix", width=170),
    Column("entry", "your function", width=150),
    Column("line", "line", width=220),
    Column("kind", "what it does there", width=300),
    Column("role", "role", width=80),
    Column("looks", "looks", "count"),
    Column("seconds", "seen for", "seconds"),
    Column("percent", "of all (%)", "count", width=115),
)
