"""Boxes that stay on the server: a browser shows and names the same as if it had them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serving import running
from stageprof_collectors.recording import Recording
from stageprof_ui import far
from stageprof_ui.app import page as made
from stageprof_ui.far import Far
from stageprof_ui.server import App
from stageprof_ui.store import Store
from ui.conftest import Watched

_TIMELINE = (
    "Object.values(Object.values(stageprof.apps)[0].drawings)"
    ".find((d) => d.figure.name.startsWith('Tasks'))"
)
#: Pixels of the picture in base64, which crosses a hundred times faster than a list.
_PIXELS = (
    f"(() => {{ const a = {_TIMELINE}.image.data.image[0];"
    "const bytes = new Uint8Array(a.buffer, a.byteOffset, a.byteLength);"
    "return btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join('')); })()"
)


@pytest.fixture(scope="module")
def store(generated: Callable[[int], Path]) -> Store:
    return Store(Recording.open(generated(10_000)))


@pytest.fixture
def asked(store: Store) -> Far:
    return Far(store.recording, store.boxes, store.tables)


def question(**more: Any) -> str:
    told = {"kind": "picture", "lines": [[0]], "window": [0.0, 1e6], "width": 10}
    return json.dumps(told | more)


# -- questions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{",
        "\ud800",
        question(kind="keys"),
        question(lines=[[10**9]]),
        question(lines=[[-1]]),
        question(lines="all"),
        question(window=[1.0, 1.0]),
        question(window=[float("nan"), 1.0]),
        question(width=10**9),
        question(width=-1),
        question(mode="no such"),
    ],
)
def test_what_no_page_asks_gets_no_answer(asked: Far, text: str) -> None:
    assert asked.answer(text) == {"kind": ["none"]}


def test_few_boxes_are_sent_and_of_many_their_shares(asked: Far) -> None:
    rows = list(range(len(asked.boxes.rows)))
    whole = [0.0, float(asked.boxes.start.max())]
    one = question(lines=[rows], window=whole)
    assert asked.answer(one)["kind"] == ["boxes"]
    assert sum(np.diff(asked.answer(one)["offsets"][0].astype(int))) == len(asked.boxes)


def test_a_question_that_was_asked_before_is_not_worked_out_again(
    asked: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far, "NEAR", 10)
    text = question(window=[0.0, float(asked.boxes.start.max())], lines=[[4, 5, 6, 7, 8, 9]])
    first = asked.answer(text)
    assert first["kind"] == ["picture"]
    assert asked.answer(text) is first


def test_a_session_is_sent_no_box(store: Store) -> None:
    """However many there are; only a page that a server stands behind can ask for them."""
    many = Store(store.recording)
    many.near_most = 100
    sent = many.stock(served=True).source.data
    assert (len(sent["start"][0]), len(sent["offsets"][0])) == (0, len(store.boxes.rows) + 1)
    assert len(many.stock().source.data["start"][0]) == len(store.boxes)
    assert store.stock(served=True).far is None


# -- in a browser -------------------------------------------------------------------------------


def test_the_server_and_the_browser_draw_the_same(
    watched: Watched, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opacity and colour of every pixel, from afar and near, and in each way of colouring.

    But for where the browser marks the beginning of a wide box.
    """
    monkeypatch.setattr(far, "NEAR", 1500)
    many = Store(store.recording)
    many.near_most = 100
    end = store.recording.wall
    views = [(0.0, end, "layer"), (0.0, end, "gil"), (0.2 * end, 0.9 * end, "stage"),
             (0.5 * end, 0.51 * end, "layer")]  # fmt: skip
    pictures = []
    for one in (store, many):
        with running(App(partial(made, one))) as app:
            page = watched.open(f"{app.url}#timeline")
            page.locator("[data-sp-page=timeline]").click()
            pictures.append([seen(page, *view) for view in views])
            if one is many:
                named(page, store)
    for near, remote in zip(*pictures, strict=True):
        (opacity, colour), (there, theirs) = near, remote
        assert opacity.any()
        assert np.abs(opacity - there).max() <= 1
        plain = np.isin(colour, theirs)
        assert plain.mean() > 0.5
        assert (colour == theirs)[plain & (opacity > 45)].mean() > 0.998


def seen(page: Any, start: float, end: float, mode: str) -> Any:
    """Opacity and colour of the pixels of a window, once it was drawn."""
    before = page.evaluate("Number(document.documentElement.dataset.stageprofDrawn)")
    page.evaluate(
        f"([start, end, mode]) => {{ const d = {_TIMELINE};"
        "d.figure.x_range.setv({start, end}); d.selection.change({mode}); }",
        [start, end, mode],
    )
    page.wait_for_function(
        f"(before) => Number(document.documentElement.dataset.stageprofDrawn) > before"
        f" && !{_TIMELINE}.flying && {_TIMELINE}.drawn",
        arg=before,
    )
    # What was asked for while the page was laid out may be drawn before.
    page.wait_for_function(
        f"([a, b]) => {{ const d = {_TIMELINE}.image.data;"
        "return Math.abs(d.x[0] - a) < 1e-6 && Math.abs(d.dw[0] - b + a) < 1e-6; }",
        arg=[start, end],
    )
    pixels = np.frombuffer(base64.b64decode(page.evaluate(_PIXELS)), "<u4").astype(np.int64)
    return pixels >> 24, pixels & 0xFFFFFF


def named(page: Any, store: Store) -> None:
    """A task under the pointer, from afar: its key is told, and a click tells its story."""
    boxes, tasks = store.boxes, store.recording.tasks()
    threads = np.array([row.kind == "thread" for row in boxes.rows])
    on_thread = np.repeat(threads, np.diff(boxes.offsets).astype(np.int64))
    i = int(np.flatnonzero((boxes.run >= 0) & on_thread)[300])
    middle = float(boxes.start[i] + boxes.length[i] / 2) * boxes.unit_ns / 1e9
    seen(page, middle - 1.0, middle + 1.0, "layer")
    where = page.evaluate(
        f"""([x, r]) => {{ const d = {_TIMELINE}; const v = Bokeh.index.find_one(d.figure);
        const at = v.canvas_view.el.getBoundingClientRect();
        const line = d.lines.find((l) => l.rows.includes(r)), y = (line.top + line.bottom) / 2;
        return [at.left + v.frame.x_scale.compute(x), at.top + v.frame.y_scale.compute(y)]; }}""",
        [middle, int(np.searchsorted(boxes.offsets, i, side="right")) - 1],
    )
    page.mouse.move(where[0] - 3, where[1])
    page.mouse.move(*where)
    page.locator("#sp-tip").wait_for(state="visible")
    text = page.locator("#sp-tip").inner_text()
    near = np.abs(tasks["start_s"] + tasks["duration_s"] / 2 - middle) < 0.05
    assert any(key in text for key in tasks["key"][near]), text
    page.mouse.click(*where)
    story = page.locator("[data-sp-view=timeline] .sp-story")
    story.wait_for()
    assert "execution" in story.inner_text()
