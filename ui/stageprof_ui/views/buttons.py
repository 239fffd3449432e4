"""The buttons of a picture: what dragging does in it, and the way back to the whole.

They stand in the page and not in the figure: Bokeh hides tools for which it sees no room, as in a
page that was not shown yet, and draws them in the colours of one theme.
"""

from __future__ import annotations

from typing import Any

from bokeh.models.widgets import Button, RadioButtonGroup

from stageprof_ui import browser
from stageprof_ui.canvas import Drawn


def buttons(whole: Drawn) -> list[Any]:
    """Two ways to drag, of which one is chosen; and everything again."""
    sheets: list[Any] = [browser.view_style()]
    drag = RadioButtonGroup(
        labels=["drag moves", "drag sums up"], active=0, stylesheets=sheets, css_classes=["sp-drag"]
    )
    whole.stock.keep(drag, "active", "drag")
    whole.plot.toolbar.active_drag = whole.drags[drag.active or 0]
    chosen = whole.call("d.drag(ways[cb_obj.active]);", ways=whole.drags)
    drag.js_on_change("active", chosen)
    clear = Button(label="show everything", stylesheets=sheets)
    clear.js_on_click(whole.call("d.everything();"))
    return [drag, clear]


__all__ = ["buttons"]
