"""The time line: a row for each worker thread, and what happened to its tasks."""

from __future__ import annotations

from typing import Any

import panel as pn
from bokeh.models.widgets import RadioButtonGroup, TextInput, Toggle

from stageprof_ui import browser
from stageprof_ui.canvas import Drawn, Stock, drawn
from stageprof_ui.columns import tables, timeline
from stageprof_ui.store import Store
from stageprof_ui.views.buttons import buttons
from stageprof_ui.views.html import html
from stageprof_ui.views.search import Search

#: Above this many lines processes are folded at first.
_FOLDED_ABOVE = 40
_MODES = ("layer", "stage", "gil")


def view(store: Store, stock: Stock) -> pn.Column:
    """Controls, the rows, and the story of what was clicked."""
    lines, folded = timeline.lines(store.boxes), timeline.folded(store.boxes)
    if not lines:
        return pn.Column(html("empty", {"text": "No task ran in this recording."}))
    fold = len(lines) > _FOLDED_ABOVE
    shown = (folded, lines) if fold else (lines, folded)
    whole = drawn(stock, shown[0], folded=shown[1], label="Tasks of each worker thread over time")
    return pn.Column(
        html("timeline", {"left_out": store.boxes.left_out}),
        *_controls(store, whole, fold=fold, ask=stock.served and tables.too_many(store.recording)),
        html("legend", {"legends": tables.legends(store.tables), "gil": store.holds.said}),
        whole.plot,
        whole.told,
        sizing_mode="stretch_width",
    )


def _controls(store: Store, whole: Drawn, *, fold: bool, ask: bool) -> list[Any]:
    """What they are, and what the server found if it is to be asked for keys."""
    sheets: list[Any] = [browser.view_style()]
    placeholder = "layer or file:line; a key and Enter" if ask else "key, layer or file:line"
    search = TextInput(placeholder=placeholder, title="Find", width=260, stylesheets=sheets)
    search.js_on_change("value_input", whole.call("d.selection.search(cb_obj.value_input);"))
    colours = RadioButtonGroup(labels=["layer", "stage", "GIL wait"], active=0, stylesheets=sheets)
    modes = list(_MODES)
    chosen = whole.call("d.selection.change({mode: modes[cb_obj.active]});", modes=modes)
    colours.js_on_change("active", chosen)
    folding = Toggle(label="one row per process", active=fold, stylesheets=sheets)
    folding.js_on_change("active", whole.call(f"d.fold(cb_obj.active !== {str(fold).lower()});"))
    rest = buttons(whole)
    controls = pn.FlexBox(search, colours, folding, *rest, align_items="end", gap="10px")
    return [controls, Search(store, search).told] if ask else [controls]
