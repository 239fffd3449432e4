"""A view that cannot be made is no reason to lose the others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from stageprof_collectors.text import safe
from stageprof_ui.canvas import Stock
from stageprof_ui.store import Store
from stageprof_ui.views.html import html

logger = logging.getLogger("stageprof")

View = Callable[[Store, Stock], Any]


def shown(view: View, store: Store, stock: Stock) -> Any:
    """What a view makes; if it cannot, what it says instead: the other pages are still there."""
    try:
        return view(store, stock)
    except Exception as error:
        logger.exception("a page of the app cannot be shown")
        why = f"This page cannot be shown ({type(error).__name__}: {error}). The others can."
        return html("empty", {"text": safe(why, limit=300)})
