"""The first page: where the wall time went, what to change, and the run at a glance."""

from __future__ import annotations

from typing import Any

import panel as pn

from stageprof_ui.canvas import Stock, drawn
from stageprof_ui.columns import lines, overview
from stageprof_ui.store import Store
from stageprof_ui.views.buttons import buttons
from stageprof_ui.views.html import html


def view(store: Store, stock: Stock) -> pn.Column:
    """Stage bar and cards first, then the waterfall."""
    return pn.Column(
        html("stages", overview.stages(store.summary) | {"app": stock.name}),
        html("cards", store.cards | {"app": stock.name}),
        waterfall(store, stock),
        sizing_mode="stretch_width",
    )


def waterfall(store: Store, stock: Stock) -> Any:
    """Client, scheduler and workers on one time axis, with the critical path through them."""
    shown = lines.waterfall(store.boxes)
    whole = drawn(stock, shown, label="What each part did over time", mode="stage", height=200)
    controls = pn.FlexBox(*buttons(whole), gap="10px")
    return pn.Column(
        html("waterfall"), controls, whole.plot, whole.told, sizing_mode="stretch_width"
    )
