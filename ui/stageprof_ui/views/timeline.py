"""The time line: a row for each worker thread, and what happened to its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import panel as pn
from bokeh.models import CustomJS
from bokeh.models.widgets import RadioButtonGroup, TextInput, Toggle

from stageprof_collectors.findings.quantity import count
from stageprof_ui import browser
from stageprof_ui.canvas import Drawn, Stock, drawn
from stageprof_ui.columns import failed, lines, story, tables
from stageprof_ui.columns.timeline import CLOCK
from stageprof_ui.columns.untold import THREADLESS
from stageprof_ui.store import Store
from stageprof_ui.views.buttons import buttons
from stageprof_ui.views.html import html
from stageprof_ui.views.search import Search

_MODES = ("layer", "stage", "gil")
#: Nothing is looked for any more.
_EMPTY: Final = "search.value_input = ''; search.value = '';"
_CROWDED: Final = "overlapped too many others to have a separate row"
#: By what `Boxes.left_out` counts: what that is, and what became of it.
_LEFT_OUT: Final = {
    lines.THREAD: ("task", f"{_CROWDED}; the table of layers counts all"),
    "transfer": ("transfer", f"{_CROWDED}; the table of transfers counts all"),
    "spill": (
        "step", f"of spilling or loading {_CROWDED}; left out of this picture",
    ),
    THREADLESS: (
        "task", "had not ended, and no thread was left; left out of this picture",
    ),
    CLOCK: (
        "clock",
        "could not be compared with the client's; what it timed is left out of this picture",
    ),
}  # fmt: skip


#: What a page cannot tell of its tasks, for it would be too large.
_NO_STORY: Final = (
    "A click tells no story here: what tasks waited for is in pages of up to {most:,} of them."
)
_NO_NEEDS: Final = "Which results a task needed is not told: they are more than {most:,}."
_CUT: Final = "Of a key the first {most} characters are searched."


def view(store: Store, stock: Stock) -> pn.Column:
    """Controls, the rows, and the story of what was clicked."""
    each, folded = lines.lines(store.boxes), lines.folded(store.boxes)
    if not each:
        return pn.Column(html("empty", {"text": "No task ran in this recording."}))
    fold = stock.chosen.folded
    if fold is None:
        fold = len(each) > lines.FOLDED_ABOVE
    shown = (folded, each) if fold else (each, folded)
    whole = drawn(stock, shown[0], folded=shown[1], label="Tasks of each worker thread over time")
    stock.keep(whole.told, "text", "told")
    return pn.Column(
        html("timeline", _said(store, stock)),
        *_controls(store, stock, whole, fold=fold),
        html("legend", _legend(store, stock)),
        whole.plot,
        whole.told,
        sizing_mode="stretch_width",
    )


def _said(store: Store, stock: Stock) -> dict[str, Any]:
    """What a reader can do here, and what cannot be told."""
    told = stock.far is not None or len(store.stories.sent) > 0
    sentences = [*left_out(store.boxes.left_out)]
    if not told:
        sentences.append(_NO_STORY.format(most=store.stories_most))
    elif stock.far is None and not len(store.stories.need_from):
        sentences.append(_NO_NEEDS.format(most=story.NEEDS))
    if tables.cut(store.keys):
        sentences.append(_CUT.format(most=tables.KEY))
    return {"left_out": sentences, "stories": told}


def left_out(counts: Mapping[str, int]) -> list[str]:
    """What the picture does not hold, a sentence for each reason."""
    said = ((count(number, _LEFT_OUT[why][0]), _LEFT_OUT[why][1]) for why, number in counts.items())
    return [f"{what} {became}." for what, became in said]


def _legend(store: Store, stock: Stock) -> dict[str, Any]:
    """What the colours mean, and whose choice of them it follows."""
    legends = tables.legends(store.tables)
    striped = failed.sentence(store.recording, store.tables.failed)
    return {
        "legends": legends, "gil": store.holds.said, "app": stock.name, "failed": striped,
        "chosen": _MODES[stock.chosen.colours],
    }  # fmt: skip


def _controls(store: Store, stock: Stock, whole: Drawn, *, fold: bool) -> list[Any]:
    """What they are, and what the server found if it is to be asked for keys."""
    many = tables.too_many(store.recording)
    ask = stock.served and many
    search, rest = _search(stock, whole, _SOUGHT[many, stock.served]), buttons(whole)
    rest[-1].js_on_click(CustomJS(args={"search": search}, code=_EMPTY))
    chosen = [_colours(stock, whole), _folding(stock, whole, at_first=fold)]
    controls = pn.FlexBox(search, *chosen, *rest, align_items="end", gap="10px")
    return [controls, Search(store, search).told] if ask else [controls]


#: What can be searched for: where tasks are many, and where a server is there to be asked.
_SOUGHT: Final = {
    (False, False): "key, layer or file:line",
    (False, True): "key, layer or file:line",
    (True, True): "layer or file:line; a key and Enter",
    (True, False): "layer or file:line (too many tasks for keys)",
}


def _search(stock: Stock, whole: Drawn, placeholder: str) -> TextInput:
    made = TextInput(placeholder=placeholder, title="Find", width=300, stylesheets=_sheets())
    made.value = stock.chosen.search
    stock.keep(made, "value_input", "search")
    made.js_on_change("value_input", whole.call("d.selection.search(cb_obj.value_input);"))
    return made


def _colours(stock: Stock, whole: Drawn) -> RadioButtonGroup:
    made = RadioButtonGroup(labels=["layer", "stage", "GIL wait"], stylesheets=_sheets())
    stock.keep(made, "active", "colours")
    code = "d.selection.change({mode: modes[cb_obj.active]});"
    made.js_on_change("active", whole.call(code, modes=list(_MODES)))
    return made


def _folding(stock: Stock, whole: Drawn, *, at_first: bool) -> Toggle:
    made = Toggle(label="one row per process", active=at_first, stylesheets=_sheets())
    stock.keep(made, "active", "folded")
    code = f"d.fold(cb_obj.active !== {str(at_first).lower()});"
    made.js_on_change("active", whole.call(code))
    return made


def _sheets() -> list[Any]:
    return [browser.view_style()]
