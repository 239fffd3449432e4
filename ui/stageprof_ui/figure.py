"""Figures as all pages have them: on the page's own ground, and as wide as there is room."""

from __future__ import annotations

from typing import Any, Final

from bokeh.plotting import figure

#: Bokeh shifts its canvas by half a pixel and then clears it: what was once drawn at the left edge
#: stays.
_EDGE: Final = ".bk-Canvas { clip-path: inset(0 0 0 1px); }"


def bare(name: str, *, axes: bool = True, **more: Any) -> Any:
    """A figure without a ground, a toolbar and tools.

    Args:
        name: what it shows, for those who cannot see it.
        axes: whether it has axes, a grid, and room for them.
        more: as `bokeh.plotting.figure` takes it.
    """
    given = {"toolbar_location": None, "sizing_mode": "stretch_width", "stylesheets": [_EDGE]}
    plot = figure(name=name, **(given | more))
    if "html_attributes" in plot.properties():  # since Bokeh 3.7
        plot.html_attributes = {"role": "img", "aria-label": name}
    clear(plot)
    plot.toolbar.tools = []
    if not axes:
        plot.axis.visible = plot.grid.visible = False
        plot.min_border = 0
    return plot


def clear(plot: Any) -> None:
    """Take the ground of a figure away, so that the page's theme is seen behind it."""
    plot.background_fill_alpha = plot.border_fill_alpha = plot.outline_line_alpha = 0
