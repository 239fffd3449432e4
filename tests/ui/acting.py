"""What of a page acts on whoever looks at it: nothing that a recording says may be there."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import Any

from bokeh.models.text import PlainText

from stageprof_ui.canvas import Stock
from stageprof_ui.store import Store
from ui.observed import hostile


def acting(view: Callable[[Store, Stock], Any]) -> list[str]:
    """What a view makes of `hostile` that is HTML; not what is drawn, where nothing is HTML."""
    store = Store(hostile().recording(1000))
    models = view(store, store.stock()).get_root().references()
    said = [m for m in models if not isinstance(m, PlainText)]
    found = [unescape(str(getattr(m, name, ""))) for m in said for name in ("text", "object")]
    return [text for text in found if "<img" in text or "<script" in text]
