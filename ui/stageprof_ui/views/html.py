"""HTML of our own templates as a pane with our style."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import panel as pn

from stageprof_ui import browser, words


def html(template: str, facts: Mapping[str, Any] | None = None) -> pn.pane.HTML:
    """A template with facts; what it shows is escaped there."""
    return pn.pane.HTML(
        words.html(template, **(facts or {})),
        stylesheets=[browser.view_style()],
        sizing_mode="stretch_width",
        margin=0,
    )
