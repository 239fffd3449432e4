"""The app: its pages in one frame, for the server and for the static report alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import panel as pn

from stageprof_collectors.text import safe
from stageprof_ui import browser
from stageprof_ui.canvas import Stock
from stageprof_ui.store import Store
from stageprof_ui.views import overview, timeline

View = Callable[[Store, Stock], Any]

#: Every page: its name in the address, its title, and what makes it.
PAGES: Final[tuple[tuple[str, str, View], ...]] = (
    ("overview", "Overview", overview.view),
    ("timeline", "Timeline", timeline.view),
)


def page(store: Store, *, policy: str = "", trouble: str = "") -> pn.Template:
    """All pages of a recording in their frame.

    Args:
        store: the recording.
        policy: a Content-Security-Policy for the page itself, where no server sends one.
        trouble: what the reader must know first.
    """
    pn.extension("tabulator", notifications=False)
    stock = store.stock()
    frame = pn.Template(browser.frame())
    for name, _, view in PAGES:
        frame.add_panel(name, view(store, stock))
    for name, value in _variables(store, policy, trouble).items():
        frame.add_variable(name, value)
    return frame


def _variables(store: Store, policy: str, trouble: str) -> dict[str, Any]:
    summary = store.summary
    wrong = [summary.incomplete, trouble]
    return {
        "heading": safe(summary.label, limit=200),
        "facts": " · ".join(summary.facts),
        "trouble": safe(". ".join(filter(None, wrong)), limit=500) if any(wrong) else "",
        "pages": [(name, title) for name, title, _ in PAGES],
        "style": browser.page_style(),
        "script": browser.script(),
        "policy": policy,
        # Neither is fetched from anywhere, and there is none.
        "apple_icon": "",
        "app_favicon": "",
    }
