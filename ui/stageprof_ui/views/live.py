"""The page of a run that goes on, and the others as they were at the latest snapshot.

Each viewer is told what is new since it was told last, and not more than its share of the line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, astuple, replace
from typing import Any, Final

import numpy as np
import panel as pn
from bokeh.models import ColumnDataSource, CustomJS
from bokeh.models.widgets import Toggle
from panel.io.document import hold

from stageprof_runtime.errors import StageprofError
from stageprof_ui import browser
from stageprof_ui.canvas import Drawn, Stock, drawn
from stageprof_ui.columns.lines import FOLDED_ABOVE, folded
from stageprof_ui.columns.sent import Sent, columns
from stageprof_ui.columns.sent import text as text_of
from stageprof_ui.columns.story import Stories
from stageprof_ui.links import unlink
from stageprof_ui.live import Run, Snapshot
from stageprof_ui.shown import View, shown
from stageprof_ui.views.buttons import buttons
from stageprof_ui.views.html import html
from stageprof_ui.words import text

#: Milliseconds between two tellings.
PERIOD_MS: Final = 500
#: Boxes in one telling, of 14 bytes each; and bytes per second for the other pages.
MOST: Final = 6_000
BANDWIDTH: Final = 120_000
#: Making pages may take this share of a core.
SHARE: Final = 0.1

Page = tuple[str, str, View]


def view(run: Run, pages: Sequence[Page]) -> list[tuple[str, str, Any]]:
    """The views of one viewer, each with its name and title: the live one first."""
    viewer = Viewer(run, pages)
    document = pn.state.curdoc
    if document is not None and document.session_context is not None:
        # Before the document has arrived, what is sent would be overwritten by it.
        document.on_event("document_ready", lambda _: viewer.begin())
    others = [(name, title, viewer.columns[name]) for name, title, _ in pages]
    return [("live", "Live", viewer.panel), *others]


class Viewer:
    """One browser that looks at a run: what it was told, and which page it shows."""

    def __init__(self, run: Run, pages: Sequence[Page]) -> None:
        self._run = run
        self._makers = {name: make for name, _, make in pages}
        self.columns = {name: pn.Column(html("live_wait", {"title": title}),
                        sizing_mode="stretch_width") for name, title, _ in pages}  # fmt: skip
        #: where the browser finds what is new, and where it says what it shows and lacks
        self.told = ColumnDataSource(data={})
        self.heard = ColumnDataSource(data={"page": ["live"]})
        self.heard.on_change("data", self._hear)
        self.panel = self._panel()
        self._shown, self._said, self._last = "live", "", ""
        #: of each page the number of the snapshot that it shows; the latest that one shows, with
        #: its stock: to keep the others too would keep a whole recording for each page
        self._made: dict[str, int] = {}
        self._stock: tuple[Snapshot, Stock] | None = None
        self._not_before = 0.0
        #: whether something on that page is open that was not at first
        self._hold = False

    def begin(self) -> None:
        """Tell what is new from now on, until the browser has gone."""
        pn.state.add_periodic_callback(self._tick, period=PERIOD_MS)

    # -- the live page ----------------------------------------------------------------------

    def _panel(self) -> pn.Column:
        growth = self._run.growth
        boxes, tables = growth.boxes(), growth.tables()
        #: how many boxes, rows and layers the browser was told of
        self._boxes, self._lines, self._layers = len(boxes), len(boxes.rows), len(tables.layers)
        end = max(growth.end / 1e9, 1.0) * 1.25
        sent = Sent(columns(boxes), _no_stories(), text_of(tables))
        stock = Stock.of("live", sent, end)
        lines, fewer = growth.lines[: self._lines], folded(boxes)
        whole = drawn(stock, lines, folded=fewer, label="Tasks of each worker thread until now")
        folding = _folding(whole, pressed=len(lines) > FOLDED_ABOVE)
        self.told.js_on_change("data", _take(whole, self.told, self.heard, folding))
        whole.plot.tags = [self.told, self.heard]  # a document holds what its roots lead to
        return pn.Column(
            html("live"),
            self._controls(),
            html("live_timeline"),
            pn.FlexBox(folding, *buttons(whole), align_items="end", gap="10px"),
            whole.plot,
            whole.told,
            sizing_mode="stretch_width",
        )

    def _controls(self) -> Any:
        sheets = [browser.view_style()]
        self._stop = pn.widgets.Button(label="Stop recording", stylesheets=sheets)
        self._stop.on_click(lambda _: self._run.stop())
        name = pn.widgets.TextInput(
            label="Save the recording as", placeholder="name", width=220, stylesheets=sheets
        )
        save = pn.widgets.Button(label="Save", stylesheets=sheets)
        save.on_click(lambda _: self._save(name.value_input or name.value or ""))
        return pn.FlexBox(self._stop, name, save, align_items="end", gap="10px")

    def _save(self, name: str) -> None:
        try:
            so_far = ", as it is now" if self._run.running else ""
            lacks = "; it is incomplete" if self._run.failed else ""
            self._said = f"saved as {self._run.save(name)}{so_far}{lacks}"
        except StageprofError as error:
            self._said = text(error)

    # -- what is told -----------------------------------------------------------------------

    def _tick(self) -> None:
        message = self._message()
        if message["status"] != [self._last]:
            self._last = message["status"][0]
            self.told.data = message
        self._stop.disabled = self._run.state != "recording"
        self._renew()

    def _message(self) -> dict[str, Any]:
        """What is new, as `browser/live.js` reads it: one row, each cell of which is an array."""
        growth = self._run.growth
        delta = growth.since(self._boxes, MOST)
        lines = [asdict(line) for line in growth.lines[self._lines :]]
        layers = [asdict(layer) for layer in growth.layers[self._layers :]]
        names = {
            "lines_from": self._lines,
            "lines": lines,
            "layers_from": self._layers,
            "layers": layers,
        }
        self._boxes += len(delta.row)
        self._lines += len(lines)
        self._layers += len(layers)
        columns = {name: [column] for name, column in asdict(delta).items()}
        return columns | {"names": [json.dumps(names)], "status": [json.dumps(self._status())]}

    def _status(self) -> dict[str, Any]:
        return self._run.status() | {
            "said": self._said,
            "sent": self._boxes,
            "lines": self._lines,
            "layers": self._layers,
            "now": [astuple(task) for task in self._run.now],
            "apps": [self._stock[1].name] if self._stock else [],
        }

    def _hear(self, _attr: str, _old: Any, new: dict[str, Any]) -> None:
        """The browser shows another page, or lacks something that it was told of."""
        self._shown, self._hold = str(new["page"][0]), new.get("hold") == [True]
        if new.get("missing") == [True]:
            self._boxes = min(max(0, int(new["next"][0])), self._boxes)
            self._lines = min(max(0, int(new["lines"][0])), self._lines)
            self._layers = min(max(0, int(new["layers"][0])), self._layers)
        self._renew()

    # -- the other pages --------------------------------------------------------------------

    def _renew(self) -> None:
        """Make the page that is looked at from the latest snapshot, if that is due."""
        latest, column = self._run.latest, self.columns.get(self._shown)
        if latest is None or column is None or self._made.get(self._shown) == latest.number:
            return
        first = self._shown not in self._made
        if not first and (self._hold or time.monotonic() < self._not_before):
            return
        # first: what cannot be made of it is not tried again
        self._made[self._shown] = latest.number
        began = time.thread_time()
        sent = self._make(self._shown, column, latest)
        took = time.thread_time() - began
        self._not_before = time.monotonic() + max(took / SHARE, sent / BANDWIDTH)

    def _make(self, name: str, column: pn.Column, latest: Snapshot) -> int:
        """Put a page together; about how many bytes are sent for it."""
        sent = 0
        if self._stock is None or self._stock[0] is not latest:
            stock = latest.store.stock(served=True)
            if self._stock is not None:
                stock = as_before(*self._stock, stock)
            self._stock, sent = (latest, stock), _bytes(stock)
        head = html("live_age", self._age(latest))
        # What pages share is in the document already: what is hung on it goes in one message with
        # the page, or it would refer to what the browser does not know yet.
        unlink(column)
        with hold():
            column[:] = [head, shown(self._makers[name], latest.store, self._stock[1])]
        return sent

    def _age(self, latest: Snapshot) -> dict[str, Any]:
        """How old a page is, and what it lacks: while all goes well, only what is yet to come."""
        lacks = latest.store.summary.incomplete if latest.final else self._run.failed
        return {"at": latest.at, "running": not latest.final, "incomplete": text(lacks)}


def as_before(before: Snapshot, old: Stock, stock: Stock) -> Stock:
    """With what the reader had chosen: controls, and the span if it was not the whole run."""
    start: Any = old.x_range.start
    stop: Any = old.x_range.end
    if start > 0 or stop < before.store.recording.wall:
        stock.x_range.update(start=start, end=stop)
    return replace(stock, chosen=old.chosen)


def _take(
    whole: Drawn, told: ColumnDataSource, heard: ColumnDataSource, folding: Toggle
) -> CustomJS:
    code = "S.live.take(d, news.data, heard, {button, most});"
    return whole.call(code, news=told, heard=heard, button=folding, most=FOLDED_ABOVE)


def _folding(whole: Drawn, *, pressed: bool) -> Toggle:
    label, sheet = "one row per process", browser.view_style()
    folding = Toggle(label=label, active=pressed, stylesheets=[sheet])
    folding.js_on_change("active", whole.call("S.live.chosen(d, cb_obj.active);"))
    return folding


def _no_stories() -> dict[str, Any]:
    return Stories.none().columns() | {"keys": [np.zeros(0, np.uint8)]}


def _bytes(stock: Stock) -> int:
    """About what the stock of a recording is on the line."""
    sources: list[Any] = [stock.source, stock.stories]
    columns = [column for source in sources for column in source.data.values()]
    return sum(int(np.asarray(cell).nbytes) for column in columns for cell in column)
