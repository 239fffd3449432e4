"""The list of the recordings in a folder; rows fill in as files are read."""

from __future__ import annotations

from typing import Any, Final

import panel as pn

from stageprof_ui import browser, words
from stageprof_ui.columns.library import ORDERS, facts
from stageprof_ui.shelf import Shelf
from stageprof_ui.views.html import html

#: Milliseconds between two looks at what was read meanwhile.
PERIOD_MS: Final = 700


def view(shelf: Shelf) -> pn.Column:
    """The list, below a field that searches it and a choice of its order."""
    look: dict[str, Any] = {"stylesheets": [browser.view_style()], "margin": 0}
    hint = "name, program, date or finding"
    find = pn.widgets.TextInput(label="Find", placeholder=hint, width=300, **look)
    order = pn.widgets.Select(label="Order", options=list(ORDERS), width=220, **look)

    def listed() -> dict[str, Any]:
        wanted = str(find.value_input or "")
        return facts(shelf.folder, shelf.lines, find=wanted, order=str(order.value))

    pane = html("library", listed())

    def follow(*_: object) -> None:
        """Only what changed is sent."""
        now = words.html("library", **listed())
        if now != pane.object:
            pane.object = now

    find.param.watch(follow, "value_input")
    order.param.watch(follow, "value")
    if pn.state.curdoc is not None and pn.state.curdoc.session_context is not None:
        pn.state.add_periodic_callback(follow, period=PERIOD_MS)
    controls = pn.FlexBox(find, order, align_items="end", gap="10px")
    return pn.Column(controls, pane, sizing_mode="stretch_width")
