"""A page of a run that goes on is made anew again and again; what a reader chose stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.models import Model
from bokeh.models.widgets import Div, RadioButtonGroup, TextInput, Toggle

from serving import running
from stageprof.app import served
from stageprof_collectors.recording import Recording
from stageprof_ui.canvas import Stock
from stageprof_ui.live import Snapshot
from stageprof_ui.store import Store
from stageprof_ui.views import timeline
from stageprof_ui.views.live import as_before
from ui.conftest import Watched


def controls(column: pn.Column) -> tuple[TextInput, Toggle, RadioButtonGroup, Div]:
    def all_(kind: type[Model]) -> list[Any]:
        return [one for one in column.get_root().references() if type(one) is kind]

    colours = next(one for one in all_(RadioButtonGroup) if "layer" in one.labels)
    return all_(TextInput)[0], all_(Toggle)[0], colours, all_(Div)[0]


def chosen(stock: Stock, store: Store) -> list[object]:
    search, fold, colours, told = controls(timeline.view(store, stock))
    return [search.value_input, search.value, fold.active, colours.active, told.text]


def test_controls_are_as_they_were(generated: Callable[[int], Path]) -> None:
    store = Store(Recording.open(generated(1_000)))
    first, snapshot = store.stock(served=True), Snapshot(store, 0.0, 1)
    search, fold, colours, told = controls(timeline.view(store, first))
    assert chosen(first, store) == ["", "", False, 0, ""]
    search.value_input, fold.active, colours.active, told.text = "add", True, 1, "its story"
    again = as_before(snapshot, first, store.stock(served=True))
    assert chosen(again, store) == ["add", "add", True, 1, "its story"]
    assert chosen(store.stock(served=True), store) == ["", "", False, 0, ""]


def test_show_everything_looks_for_nothing_any_more(
    watched: Watched, generated: Callable[[int], Path]
) -> None:
    with running(served(Recording.open(generated(1_000)))) as app:
        page = watched.open(f"{app.url}#timeline")
        field = page.get_by_placeholder("key, layer or file:line")
        field.fill("no such")
        page.wait_for_function("Object.values(stageprof.apps)[0].selection.runs")
        page.get_by_role("button", name="show everything").first.click()
        page.wait_for_function("Object.values(stageprof.apps)[0].selection.empty")
        assert field.input_value() == ""
