"""What the pointer is at, told in the same box on every page."""

from __future__ import annotations

from typing import Any

from bokeh.models import CustomJS, HoverTool

from stageprof_ui import browser
from stageprof_ui.canvas import Stock

_OVER = """
const i = cb_data.index.indices[0], data = glyphs.data_source.data;
const pairs = () => names.map(([name, column]) => [name, data[column][i]]);
S.tip(i === undefined ? null : pairs().filter(([, value]) => value), cb_data.geometry, figure);
"""


def hover(plot: Any, glyphs: Any, stock: Stock, names: list[tuple[str, str]]) -> None:
    """Tell of the glyph under the pointer.

    Args:
        plot: the figure.
        glyphs: its renderer of what is told of.
        stock: of the app.
        names: a name and the column of texts that holds the value; "" is a heading.
    """
    args = {"figure": plot, "glyphs": glyphs, "names": names, "library": stock.library}
    over = CustomJS(args=args, code=browser.PRELUDE + _OVER)
    plot.add_tools(HoverTool(renderers=[glyphs], tooltips=None, callback=over))
    leave = CustomJS(args={"library": stock.library}, code=browser.PRELUDE + "S.tip(null);")
    plot.js_on_event("mouseleave", leave)
