"""The pages of a run that goes on: made anew from each snapshot, and in a browser."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clusters import soon
from serving import running
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.collector import Collector
from stageprof_ui.app import PAGES, following
from stageprof_ui.columns.library import when
from stageprof_ui.columns.series import natural
from stageprof_ui.live import Run
from stageprof_ui.server import App
from stageprof_ui.views.live import Viewer
from ui.conftest import Watched
from ui.followed import DRAWING, a_run, batches, snapshot, visit

Generated = Callable[[int], Path]


def test_pages_of_a_snapshot_may_show_lines_of_the_program(fed: Run) -> None:
    store = snapshot(fed).store
    assert store.sources
    assert when(store.recording.store.header["started"])[0] == pytest.approx(time.time(), abs=60)


def test_a_page_that_cannot_be_made_says_so_and_is_tried_once_for_each_snapshot(fed: Run) -> None:
    snapshot(fed)
    tried = []

    def fails(*_: Any) -> Any:
        tried.append(1)
        raise ZeroDivisionError

    viewer = Viewer(fed, [("broken", "Broken", fails)])
    viewer._shown = "broken"
    for _ in range(3):
        viewer._renew()
    assert len(tried) == 1
    said: Any = viewer.columns["broken"][-1]
    assert "cannot be shown" in str(said.object)


def test_pages_of_older_snapshots_keep_no_recording(fed: Run) -> None:
    viewer = Viewer(fed, PAGES)
    stores = []
    for name in viewer.columns:
        latest = snapshot(fed)
        visit(viewer, name)
        stores.append(weakref.ref(latest.store))
        del latest
    gc.collect()
    assert fed.latest is not None
    assert [store() for store in stores if store()] == [fed.latest.store]


def test_a_page_that_is_made_anew_shows_the_span_that_was_chosen(fed: Run) -> None:
    viewer = Viewer(fed, PAGES)
    spans = []
    for chosen in ((), (0.1, 0.2), ()):
        snapshot(fed)
        viewer._not_before = 0
        visit(viewer, "timeline")
        assert viewer._stock is not None
        span = viewer._stock[1].x_range
        spans.append((span.start, span.end))
        if chosen:
            span.update(start=chosen[0], end=chosen[1])
    assert spans[0] == spans[1] == (0, fed.latest.store.recording.wall if fed.latest else None)
    assert spans[2] == (0.1, 0.2)


@pytest.mark.usefixtures("quick")
def test_a_page_grows_with_the_run_shows_the_others_stops_and_saves(
    watched: Watched, tmp_path: Path, generated: Generated
) -> None:
    path = generated(10_000)
    all_batches = batches(path)
    collector = Collector(None, "a cluster <b>", savable=True)
    with a_run(collector, tmp_path) as run, running(App(lambda: following(run))) as app:
        page = watched.page
        page.goto(app.url)
        drawn = 0
        for number, part in enumerate(np.array_split(np.arange(len(all_batches)), 8)):
            for i in part:
                collector.take(all_batches[i])
            page.wait_for_function(f"({DRAWING}?.boxes.count ?? 0) > {drawn}")
            drawn = page.evaluate(f"{DRAWING}.boxes.count")
            if number == 4:  # somebody else begins to look
                later = page.context.new_page()
                later.goto(app.url)
        for each in (page, later):
            each.wait_for_function(f"{DRAWING}?.boxes.count === 10000")
            rows = each.evaluate(f"{DRAWING}.lines.map((line) => line.label)")
            assert rows == sorted(rows, key=lambda row: [natural(part) for part in row.split(", ")])
        later.close()
        assert page.evaluate(f"{DRAWING}.next") == 10_000
        lengths = page.evaluate(
            f"{DRAWING}.boxes.rows.reduce((s, r) => s + r.length.subarray(0, r.n)"
            ".reduce((a, b) => a + b, 0), 0)"
        )
        assert lengths == int(run.growth.boxes().length.sum())
        page.locator("[data-sp-page=overview]").click()
        page.locator("[data-sp-view=overview] .sp-stagebar").wait_for()
        page.locator("[data-sp-page=live]").click()
        page.get_by_text("Stop recording").click()
        page.wait_for_function("stageprof.apps.live && true")
        soon(lambda: run.state == "stopped")
        page.locator("[data-sp-view=live] input").first.fill("from the page")
        page.get_by_text("Save", exact=True).click()
        page.get_by_text("saved as from the page.stageprof").wait_for()
        page.locator("[data-sp-page=layers]").click()
        page.locator("[data-sp-view=layers] [data-sp-age]").wait_for()
    assert len(Recording.open(tmp_path / "from the page.stageprof").tasks()) == 10_000


@pytest.mark.usefixtures("quick")
def test_a_page_goes_on_to_say_its_age_when_the_run_has_ended(
    watched: Watched, tmp_path: Path, generated: Generated
) -> None:
    collector = Collector(None, "a cluster", savable=True)
    with a_run(collector, tmp_path) as run, running(App(lambda: following(run))) as app:
        for batch in batches(generated(1_000)):
            collector.take(batch)
        run.stop()
        soon(lambda: run.latest and run.latest.store.recording.complete)
        page = watched.page
        page.goto(f"{app.url}#layers")
        age = page.locator("[data-sp-view=layers] [data-sp-age]")
        age.wait_for()
        # what still arrives may change it once or twice, but not so often
        for _ in range(5):
            was = age.text_content()
            page.locator(f"[data-sp-age]:not(:text-is('{was}'))").first.wait_for()


def test_rows_are_in_the_order_of_their_workers_not_in_that_in_which_they_were_heard_of(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    """By worker, then thread; whoever adds to a process finds its line."""
    page = watched.open(reported(1_000))
    heard = [("worker 10", 1), ("worker 2", 2), ("worker 10", 2), ("worker 2", 10)]
    rows, processes = page.evaluate(
        """(heard) => {
          const drawing = { lines_: [[], []], fold() {} };
          heard.forEach(([parent, thread], row) => stageprof.live.add(
            drawing, { label: `${parent}, thread ${thread}`, parent, rows: [row] }));
          stageprof.live.order(drawing);
          return drawing.lines_.map((lines) => lines.map(({ label, rows }) => [label, rows]));
        }""",
        heard,
    )
    assert rows == [
        ["worker 2, thread 2", [1]],
        ["worker 2, thread 10", [3]],
        ["worker 10, thread 1", [0]],
        ["worker 10, thread 2", [2]],
    ]
    assert processes == [["worker 2", [1, 3]], ["worker 10", [0, 2]]]


def test_many_rows_are_folded_as_soon_as_they_are_so_many_until_somebody_chooses(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    page = watched.open(reported(1_000))
    shown = page.evaluate(
        """() => {
          const seen = [], folds = { most: 3, button: {} };
          const drawing = { lines_: [[], []], fold(folded) { seen.push(folded); } };
          const come = (...threads) => {
            for (const n of threads) stageprof.live.add(
              drawing, { label: `worker 1, thread ${n}`, parent: "worker 1", rows: [n] });
            stageprof.live.order(drawing, folds);
            stageprof.live.chosen(drawing, folds.button.active);  // as the button tells of it
          };
          come(1, 2, 3);
          come(4);
          folds.button.active = false;  // somebody presses it
          stageprof.live.chosen(drawing, folds.button.active);
          come(5);
          return seen;
        }"""
    )
    assert shown == [False, False, True, True, False, False, False]


def test_a_page_without_a_run_has_no_clock(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    page = watched.open(reported(1_000))
    assert page.evaluate("stageprof.live.aging") is None
