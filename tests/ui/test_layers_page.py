"""Layers: their table, their network, and a choice of one that is seen on every page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from findings.crowded import Program, calls, pieces
from replay.handmade import HandMade
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.store import Store
from stageprof_runtime.stage import SIX
from stageprof_ui.columns import layers
from stageprof_ui.views.layers import view
from ui.acting import acting
from ui.conftest import Watched

A, B, C = (f"{name}-{digit * 32}" for name, digit in (("read", "1"), ("clean", "2"), ("sum", "3")))

EDGES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40)


def chain(pieces_: int = 3) -> Recording:
    """Three layers, each of whose tasks needs the same one of the layer before."""
    made = HandMade(workers=1)
    graph = made.graph(0, 1, 2)
    t, last = 10.0, 0
    for i in range(pieces_):
        before = None
        for name, ms in ((A, 4), (B, 2), (C, 1)):
            cause = before if before is not None else -1 - graph
            last = made.run(0, t, t + ms, cause=cause, key=(name, i), wanted=name == C)
            before, t = last, t + ms
    made.wait(3, t + 1, last, t)
    return made.recording(t + 2)


def edges(pairs: list[tuple[int, int]]) -> tuple[Any, Any]:
    a, b = np.array(pairs or np.zeros((0, 2)), np.int64).reshape(-1, 2).T
    return a, b


# -- which needs which ----------------------------------------------------------------------------


def test_needs_between_layers_are_counted() -> None:
    recording = chain(3)
    names = [row.layer for row in recording.groups.rows]
    found = zip(*(c.tolist() for c in layers.dependencies(recording)), strict=True)
    assert {(names[a], names[b], n) for a, b, n in found} == {(A, B, 3), (B, C, 3)}


def test_layers_go_from_left_to_right() -> None:
    recording = chain()
    web = layers.network(recording, layers.layers(recording))
    assert dict(zip(web.nodes["layer"], web.nodes["x"], strict=True)) == {A: 0, B: 1, C: 2}
    assert web.edges["direct"].all()
    assert web.left_out == 0


def test_what_is_left_out_is_counted_and_seen_through() -> None:
    recording = chain()
    table = layers.layers(recording)
    table = table.sort_values("layer", key=lambda names: names == B)  # B is the last
    web = layers.network(recording, table, most=2)
    assert set(web.nodes["layer"]) == {A, C}
    assert web.left_out == 1
    (edge,) = web.edges.to_dict("records")
    names = web.nodes["layer"]
    assert (names[edge["source"]], names[edge["target"]], edge["direct"]) == (A, C, False)


@given(EDGES)
def test_the_order_holds_every_layer_once_and_ends_though_layers_go_in_circles(
    pairs: list[tuple[int, int]],
) -> None:
    pairs = sorted({(a, b) for a, b in pairs if a != b})
    order, _ = layers.ordered(*edges(pairs), 13)
    assert sorted(order) == list(range(13))


@given(EDGES)
def test_each_layer_is_right_of_those_that_it_needs(pairs: list[tuple[int, int]]) -> None:
    pairs = sorted({(min(a, b), max(a, b)) for a, b in pairs if a != b})
    order, depth = layers.ordered(*edges(pairs), 13)
    place = {layer: i for i, layer in enumerate(order)}
    for a, b in pairs:
        assert place[a] < place[b]
    for i in range(13):
        assert depth[i] == max((depth[a] + 1 for a, b in pairs if b == i), default=0)


@given(st.lists(st.integers(0, 5), max_size=60), EDGES)
def test_no_two_layers_are_on_one_place(depth: list[int], pairs: list[tuple[int, int]]) -> None:
    inside = [pair for pair in pairs if max(pair) < len(depth)]
    frame = pd.DataFrame(inside, columns=["source", "target"])
    x, y = layers.placed(depth, frame)
    assert len(set(zip(x, y, strict=True))) == len(depth)
    by_x = sorted(range(len(depth)), key=lambda i: x[i])
    assert [depth[i] for i in by_x] == sorted(depth)


# -- the table ------------------------------------------------------------------------------------


def test_the_table_is_that_of_the_recording_with_the_numbers_of_the_layers() -> None:
    made = Program()
    made.made("checked", 41)
    made.client("construction/build", 100, "/home/u/etl.py:41")
    made.tasks(calls(5), work=10)
    made.tasks(pieces(5), work=10)
    recording = made.recording()
    table = layers.layers(recording)
    assert table["wall_s"].tolist() == recording.layers()["wall_s"].tolist()
    for row in table.to_dict("records"):
        assert recording.groups.rows[row["number"]].prefix in (row["prefix"], "")
    assert "etl.py:41" in set(table["made at"])


def test_a_layer_is_of_the_stage_that_most_of_its_work_is_in() -> None:
    recording = chain()
    web = layers.network(recording, layers.layers(recording))
    assert set(web.nodes["stage"]) == {"execution"}
    assert (web.nodes["busy_s"] > 0).all()


def test_nothing_is_an_empty_table_and_an_empty_network() -> None:
    store = Store()
    store.complete = True
    recording = Recording(store)
    table = layers.layers(recording)
    web = layers.network(recording, table)
    assert len(table[table["number"] > 0]) == len(web.nodes) == len(web.edges) == 0
    assert (web.width, web.height, web.left_out) == (0, 0, 0)


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")
def test_what_texts_say_is_only_text() -> None:
    assert acting(view) == []


def test_hundred_thousand_layers_take_seconds_at_most() -> None:
    every = np.arange(100_000)
    order, depth = layers.ordered(every[:-1], every[1:], 100_000)
    assert (order, depth) == (every.tolist(), every.tolist())


# -- in a browser ---------------------------------------------------------------------------------

_CHOSEN = "[...(Object.values(stageprof.apps)[0].selection.layers ?? [])]"
_MODELS = "[...Bokeh.documents.flatMap((d) => [...d._all_models.values()])]"
_NODES = (
    f"{_MODELS}.find((m) => m.type === 'GlyphRenderer' && m.glyph.type === 'Scatter').data_source"
)


@pytest.fixture
def page(watched: Watched, reported: Callable[[int], str]) -> Any:
    """The page of layers of a run of some tasks."""
    opened = watched.open(reported(10_000))
    opened.evaluate("location.hash = 'layers'")
    opened.locator("[data-sp-view=layers] .tabulator-row").first.wait_for()
    return opened


def test_a_layer_clicked_in_the_table_is_chosen_everywhere(page: Any) -> None:
    page.locator("[data-sp-view=layers] .tabulator-row").nth(1).click()
    page.wait_for_function(f"{_CHOSEN}.length === 1")
    (node,) = page.evaluate(f"{_NODES}.selected.indices")
    (number,) = page.evaluate(_CHOSEN)
    assert page.evaluate(f"{_NODES}.data.number[{node}]") == number


def test_a_layer_clicked_in_the_picture_is_chosen_in_the_table(page: Any) -> None:
    page.evaluate(f"{_NODES}.selected.indices = [2]")
    page.wait_for_function(f"{_CHOSEN}.length === 1")
    assert page.evaluate(_CHOSEN) == [page.evaluate(f"{_NODES}.data.number[2]")]
    assert page.locator("[data-sp-view=layers] .tabulator-selected").count() == 1
    page.evaluate(f"{_NODES}.selected.indices = []")
    page.wait_for_function(f"{_CHOSEN}.length === 0")
    assert page.locator("[data-sp-view=layers] .tabulator-selected").count() == 0


def test_a_layer_is_no_longer_chosen_when_something_else_is(page: Any) -> None:
    page.locator("[data-sp-view=layers] .tabulator-row").first.click()
    page.wait_for_function(f"{_CHOSEN}.length === 1")
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function(f"{_CHOSEN}.length === 0")
    assert page.locator("[data-sp-view=layers] .tabulator-selected").count() == 0
    assert page.evaluate(f"{_NODES}.selected.indices") == []


def test_a_search_in_the_table_leaves_what_matches(page: Any) -> None:
    rows = page.locator("[data-sp-view=layers] .tabulator-row")
    before = rows.count()
    search = page.locator("[data-sp-view=layers] .tabulator-header-filter input").first
    search.press_sequentially("mean_chunk")
    page.wait_for_timeout(800)
    assert 0 < rows.count() < before


@pytest.mark.parametrize("width", [1440, 1280])
def test_every_stage_is_seen_without_scrolling(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for stage in SIX:
        head = page.locator(f"[data-sp-view=layers] .tabulator-col[tabulator-field={stage}_s]")
        box = head.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        title = head.locator(".tabulator-col-title")
        assert title.evaluate("(e) => e.scrollWidth <= e.clientWidth"), stage


def test_stages_are_in_the_order_of_their_seconds(page: Any) -> None:
    heads = page.locator("[data-sp-view=layers] .tabulator-col").all()
    fields = [head.get_attribute("tabulator-field") for head in heads]
    stages = [field for field in fields if field in layers.SECONDS]
    assert len(stages) == len(SIX)
    assert stages[0] == "execution_s"
    assert fields.index("wall_s") < fields.index("execution_s") < fields.index("bytes")
