"""The list of the recordings in a folder; rows fill in as files are read."""

from __future__ import annotations

from typing import Final

import panel as pn

from stageprof_ui import words
from stageprof_ui.columns.library import facts
from stageprof_ui.shelf import Shelf
from stageprof_ui.views.html import html

#: Milliseconds between two looks at what was read meanwhile.
PERIOD_MS: Final = 700


def view(shelf: Shelf) -> pn.Column:
    """The list."""
    pane = html("library", facts(shelf.folder, shelf.lines))

    def follow() -> None:
        """Only what changed is sent."""
        now = words.html("library", **facts(shelf.folder, shelf.lines))
        if now != pane.object:
            pane.object = now

    if pn.state.curdoc is not None and pn.state.curdoc.session_context is not None:
        pn.state.add_periodic_callback(follow, period=PERIOD_MS)
    return pn.Column(pane, sizing_mode="stretch_width")
