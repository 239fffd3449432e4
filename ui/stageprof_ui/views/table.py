"""Tables that are sorted, searched and turned over in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pandas as pd
import panel as pn
from bokeh.models.widgets import HTMLTemplateFormatter

from stageprof_ui import browser

Kind = Literal["text", "seconds", "size", "count"]

#: How our own script writes a number. Only numbers come here: what is no number is a dash.
_NUMBERS: Final[dict[Kind, str]] = {
    "seconds": "stageprof.seconds(value)",
    "size": "stageprof.size(value)",
    "count": 'value.toLocaleString("en")',
}
_WIDTHS: Final[dict[Kind, int]] = {"text": 170, "seconds": 96, "size": 92, "count": 84}
#: Rows of a page.
PAGE: Final = 15


@dataclass(frozen=True)
class Column:
    """A column of a frame: its name there, its title, what it holds, and what that means."""

    name: str
    title: str
    kind: Kind = "text"
    tip: str = ""
    width: int = 0


def table(
    frame: pd.DataFrame, columns: Sequence[Column], *, selectable: bool = False, page: int = PAGE
) -> pn.widgets.Tabulator:
    """A table of some columns of a frame.

    Args:
        frame: its texts are safe to show.
        columns: which are shown, in order; titles are ours, never a recording's.
        selectable: whether one row can be chosen.
        page: rows of a page.
    """
    numbers = {c.name: c.kind for c in columns if c.kind != "text"}
    names = [column.name for column in columns]
    return pn.widgets.Tabulator(
        frame[names],
        titles={column.name: column.title for column in columns},
        formatters={name: _formatter(numbers.get(name, "text")) for name in names},
        text_align=dict.fromkeys(numbers, "right"),
        header_align=dict.fromkeys(numbers, "right"),
        header_tooltips={column.name: column.tip for column in columns if column.tip},
        header_filters={
            name: {"type": "input", "func": "like", "placeholder": "find"}
            for name in names
            if name not in numbers
        },
        widths={column.name: column.width or _WIDTHS[column.kind] for column in columns},
        show_index=False,
        disabled=True,
        selectable=1 if selectable else False,
        pagination="local" if len(frame) > page else None,
        page_size=page,
        layout="fit_data_fill",
        theme="simple",
        sizing_mode="stretch_width",
        stylesheets=[browser.view_style(), browser.table_style()],
        margin=(4, 0, 12, 0),
    )


def _formatter(kind: Kind) -> Any:
    if kind == "text":  # what has no room is cut, and told whole to who points at it
        return HTMLTemplateFormatter(template='<span title="<%- value %>"><%- value %></span>')
    number = _NUMBERS[kind]
    shown = f"window.stageprof ? {number} : value"
    told = f'typeof value === "number" && isFinite(value) ? ({shown}) : "-"'
    return HTMLTemplateFormatter(template=f"<%= {told} %>")
