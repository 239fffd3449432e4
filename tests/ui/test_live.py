"""A run that goes on: nothing is lost, doubled or sent too fast, and it ends in good order."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Event

import remains
from clusters import scheduler_of, separate, soon
from serving import running
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.storage.file import read_frames
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.errors import RecordingNotWritable, UsageError
from stageprof_runtime.event import ASSIGN, MARK, NO_CAUSE, RUN, Place
from stageprof_ui import live
from stageprof_ui.app import PAGES, following
from stageprof_ui.columns import timeline
from stageprof_ui.columns.growth import UNIT_NS, Growth
from stageprof_ui.columns.library import when
from stageprof_ui.live import Run, Snapshot
from stageprof_ui.server import App
from stageprof_ui.views.live import MOST, Viewer
from ui.conftest import Watched

Generated = Callable[[int], Path]

CLIENT = Place("client", "here", 1, "client", 0)
SCHEDULER = Place("scheduler", "there", 2, "tcp://s:1", 0)
WORKER = Place("worker", "there", 3, "tcp://w:1", 0)


def batches(path: Path) -> list[bytes]:
    """What a recording is made of, in order."""
    with read_frames(path) as frames:
        found = [f.raw for f in frames if f.type == frame.BATCH]
    return [bytes(batch) for raw in found for batch in frame.split(raw)]


def assigned(run: int, key: str) -> tuple[object, ...]:
    return (ASSIGN, run, 0, "tcp://w:1", NO_CAUSE, key)


def ran(run: int, start: int, stop: int, thread: int = 1) -> tuple[object, ...]:
    return (RUN, run, start, start, start, stop, thread, 0, "tcp://w:1")


# -- boxes ------------------------------------------------------------------------------------


def test_what_grew_is_what_the_whole_recording_shows(generated: Generated) -> None:
    path = generated(10_000)
    store, growth = Store(), Growth()
    for i, batch in enumerate(batches(path)):
        store.add(batch)
        if i % 7 == 0:
            growth.look(store)
    for _ in range(6):
        growth.look(store)
    whole = timeline.boxes(Recording.open(path))
    shown = growth.boxes()
    assert len(shown) == 10_000

    def rows(boxes: Any) -> dict[str, tuple[Any, Any]]:
        start, stop = boxes.seconds()
        found = {}
        for i, row in enumerate(boxes.rows):
            mine = slice(int(boxes.offsets[i]), int(boxes.offsets[i + 1]))
            tasks = boxes.run[mine] >= (-1 if boxes is shown else 0)
            if row.kind == "thread":
                found[row.label] = start[mine][tasks], stop[mine][tasks]
        return found

    mine, wanted = rows(shown), rows(whole)
    assert mine.keys() == wanted.keys()
    first, *_ = mine
    off = wanted[first][0][0] - mine[first][0][0]  # this recording has a region that began earlier
    for label, (start, stop) in mine.items():
        assert np.allclose(start + off, wanted[label][0], atol=2e-3)
        assert np.allclose(stop + off, wanted[label][1], atol=2e-3)
        assert (start[1:] >= stop[:-1] - 1e-9).all()


def test_layers_are_those_of_the_keys_by_prefix(generated: Generated) -> None:
    store, growth = Store(), Growth()
    for batch in batches(generated(1_000)):
        store.add(batch)
    growth.look(store)
    prefixes = Recording.open(generated(1_000)).tasks()["prefix"].value_counts()
    counted = np.bincount(growth.since(0, 10**6).layer, minlength=len(growth.layers))
    named = {layer.name: int(n) for layer, n in zip(growth.layers, counted, strict=True)}
    assert {name: n for name, n in named.items() if name} == prefixes.to_dict()
    assert named[""] == 0


def test_a_task_is_held_back_until_its_layer_is_known_and_so_are_those_after_it() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    store.add(pack(SCHEDULER, 0, 1, [assigned(2, "b-1")]))
    store.add(pack(WORKER, 0, 1, [ran(1, 10**6, 2 * 10**6), ran(2, 3 * 10**6, 4 * 10**6)]))
    growth.look(store)
    assert len(growth) == 0
    store.add(pack(SCHEDULER, 1, 2, [assigned(1, "a-1")]))
    growth.look(store)
    told = growth.since(0, 10)
    assert [growth.layers[i].name for i in told.layer.tolist()] == ["a", "b"]
    assert told.start.tolist() == sorted(told.start.tolist())


def test_a_task_that_nobody_assigned_is_told_without_a_layer_after_a_while() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    store.add(pack(WORKER, 0, 1, [ran(1, 10**6, 2 * 10**6)]))
    for _ in range(6):
        growth.look(store)
    assert growth.since(0, 10).layer.tolist() == [0]


def test_rows_are_named_as_the_scheduler_names_the_worker() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    seen = (MARK, 1, "worker seen", "tcp://w:1 2 1000 al<i>ce\x1b")
    store.add(pack(SCHEDULER, 0, 1, [seen, assigned(1, "a"), assigned(2, "a")]))
    store.add(pack(WORKER, 0, 1, [ran(1, 1, 2), ran(2, 1, 2, thread=2)]))
    growth.look(store)
    name = "worker al<i>ce\\x1b"
    assert [line.label for line in growth.lines] == [f"{name}, thread 1", f"{name}, thread 2"]


def test_a_worker_that_was_restarted_is_not_folded_with_what_it_was() -> None:
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, 1, []))
    seen = [
        (MARK, 1, "worker seen", f"{address} 1 1000 a") for address in ("tcp://w:1", "tcp://w:2")
    ]
    store.add(pack(SCHEDULER, 0, 1, [*seen, assigned(1, "a"), assigned(2, "a")]))
    store.add(pack(WORKER, 0, 1, [ran(1, 1, 2)]))
    store.add(pack(WORKER._replace(pid=4, name="tcp://w:2"), 0, 1, [ran(2, 3, 4)]))
    growth.look(store)
    assert [line.parent for line in growth.lines] == ["worker a", "worker a (2)"]


def test_before_there_is_a_client_nothing_can_be_compared() -> None:
    store, growth = Store(), Growth()
    growth.look(store)
    store.add(pack(WORKER, 0, 1, [ran(1, 1, 2)]))
    growth.look(store)
    assert (len(growth), growth.lines) == (0, [])


# -- what a viewer is told ----------------------------------------------------------------------


class Told:
    """A browser that puts together what it is told, as `browser/live.js` does."""

    def __init__(self, viewer: Viewer, first: int) -> None:
        self.viewer, self.next = viewer, first
        self.boxes: list[tuple[int, int]] = []

    def take(self, message: dict[str, Any]) -> None:
        first, row, start = (message[name][0] for name in ("first", "row", "start"))
        skip = self.next - first
        if skip < 0:
            data = {"page": ["live"], "next": [self.next], "lines": [0], "layers": [1]}
            self.viewer._hear("data", None, data | {"missing": [True]})
        elif skip < len(row):
            self.boxes += zip(row[skip:].tolist(), start[skip:].tolist(), strict=True)
            self.next = first + len(row)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector(None, "a cluster", savable=True)
    yield made
    made.close()


def a_run(collector: Collector, folder: Path, *, alive: bool = True) -> Run:
    return Run(collector, alive=lambda: alive, end=collector.close, folder=folder)


def feed(run: Run, collector: Collector, path: Path) -> None:
    """All of a recording, at once."""
    with collector.lock:
        for batch in batches(path):
            collector.growing.add(batch)
    for _ in range(6):
        run._look()


def test_lost_and_doubled_messages_are_put_right(
    collector: Collector, tmp_path: Path, generated: Generated
) -> None:
    run = a_run(collector, tmp_path)
    viewer = Viewer(run, [])
    feed(run, collector, generated(50_000))
    told = Told(viewer, 0)
    for i in range(40):
        message = viewer._message()
        if i in (1, 4, 5):  # lost
            continue
        told.take(message)
        if i % 3 == 0:
            told.take(message)
    whole = run.growth.since(0, 10**6)
    assert told.boxes == list(zip(whole.row.tolist(), whole.start.tolist(), strict=True))
    names = json.loads(viewer._message()["names"][0])
    assert (names["lines"], names["layers"]) == ([], [])


def test_no_message_is_larger_than_its_share_of_the_line(
    collector: Collector, tmp_path: Path, generated: Generated
) -> None:
    run = a_run(collector, tmp_path)
    viewer = Viewer(run, [])
    feed(run, collector, generated(50_000))
    for _ in range(12):
        message = viewer._message()
        sizes = [c[0].nbytes for c in message.values() if isinstance(c[0], np.ndarray)]
        assert len(message["row"][0]) <= MOST
        assert sum(sizes) + len(message["status"][0]) + len(message["names"][0]) < 150_000


def test_who_comes_later_begins_with_all_that_was(
    collector: Collector, tmp_path: Path, generated: Generated
) -> None:
    run = a_run(collector, tmp_path)
    feed(run, collector, generated(1_000))
    viewer = Viewer(run, [])
    message = viewer._message()
    assert (message["first"], len(message["row"][0])) == ([1_000], 0)


# -- the run ------------------------------------------------------------------------------------


def test_pages_of_a_snapshot_may_show_lines_of_the_program(
    collector: Collector, tmp_path: Path, generated: Generated
) -> None:
    run = a_run(collector, tmp_path)
    feed(run, collector, generated(1_000))
    run._snapshot()
    assert run.latest is not None
    store = run.latest.store
    assert store.sources
    assert when(store.recording.store.header["started"])[0] == pytest.approx(time.time(), abs=60)


def until(what: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "PERIOD_S", 0.05)
    monkeypatch.setattr(live, "LEAST_S", 0.1)


@pytest.mark.usefixtures("quick")
def test_a_run_that_is_stopped_has_a_last_snapshot_of_all(
    tmp_path: Path, generated: Generated
) -> None:
    collector = Collector(None, "a cluster", savable=True)
    with a_run(collector, tmp_path) as run:
        for batch in batches(generated(1_000)):
            collector.take(batch)
        until(lambda: run.latest)
        assert run.status()["state"] == "recording"
        run.stop()
        until(lambda: run.latest and run.latest.store.recording.complete)
        assert (run.state, len(run.growth)) == ("stopped", 1_000)
        assert len(run.latest.store.recording.timeline.runs["run"]) == 1_000  # type: ignore[union-attr]
        elapsed = run.status()["elapsed"]
        assert run.status()["elapsed"] == elapsed
        assert run.save("kept") == "kept.stageprof"
    assert len(Recording.open(tmp_path / "kept.stageprof").tasks()) == 1_000


@pytest.mark.usefixtures("quick")
def test_a_cluster_that_goes_away_is_said_and_its_recording_kept(
    tmp_path: Path, generated: Generated
) -> None:
    collector = Collector(None, savable=True)
    there = threading.Event()
    run = Run(collector, alive=lambda: not there.is_set(), end=collector.close, folder=tmp_path)
    with run:
        for batch in batches(generated(1_000)):
            collector.take(batch)
        there.set()
        until(lambda: run.state == "lost")
        assert not run.running
        run.save("x.stageprof")
    assert Recording.open(tmp_path / "x.stageprof").complete


@pytest.mark.usefixtures("quick")
def test_an_end_that_fails_is_said(tmp_path: Path) -> None:
    collector = Collector(None, savable=True)

    def end() -> None:
        collector.close()
        raise OSError("<b>no\x1b")

    with Run(collector, alive=lambda: True, end=end, folder=tmp_path) as run:
        run.stop()
        until(lambda: run.state == "stopped")
        assert "\\x1b" in run.status()["trouble"]


@pytest.mark.usefixtures("quick")
def test_an_end_that_fails_is_still_said_when_the_last_snapshot_was_made(
    tmp_path: Path, generated: Generated
) -> None:
    collector = Collector(None, savable=True)

    def end() -> None:
        collector.close()
        raise OSError("no end")

    with Run(collector, alive=lambda: True, end=end, folder=tmp_path) as run:
        for batch in batches(generated(1_000)):
            collector.take(batch)
        run.stop()
        until(lambda: run.latest and run.latest.store.recording.complete)
    assert "no end" in run.trouble


def test_a_gap_is_said_beside_what_else_is_wrong(
    collector: Collector, tmp_path: Path, generated: Generated, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(collector, tmp_path)
    feed(run, collector, generated(1_000))

    def fails(*_: object) -> None:
        raise ValueError("long " * 200)

    with monkeypatch.context() as broken:
        broken.setattr(run.growth, "look", fails)
        broken.setattr(collector, "snapshot", fails)
        run._look()
        run._snapshot()
    both = run.trouble
    run._snapshot()
    assert "the time line has a gap" in both
    assert "pages cannot be made now" in both
    assert run.trouble.startswith("the time line has a gap")
    assert "pages cannot be made now" not in run.trouble


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "..", "../x", "/tmp/x", "a/b", "a\\b", ".hidden", "-o", "a\0", "é",
     "x" * 200, "$(rm)", "a;b", "_x"],
)  # fmt: skip
def test_only_plain_names_are_saved_under(collector: Collector, tmp_path: Path, name: str) -> None:
    """B8: what a browser says where to save."""
    with pytest.raises(UsageError):
        a_run(collector, tmp_path).save(name)
    assert list(tmp_path.iterdir()) == []


def test_what_is_recorded_after_a_save_is_counted(collector: Collector, tmp_path: Path) -> None:
    run = a_run(collector, tmp_path)
    run.save("early")
    run._ended = run._saved_at + 59
    assert run.unsaved_s == pytest.approx(59)
    run._ended = run._saved_at - 1  # it had ended before
    assert run.unsaved_s == 0


def test_a_page_that_cannot_be_made_says_so_and_is_tried_once_for_each_snapshot(
    collector: Collector, tmp_path: Path, generated: Generated
) -> None:
    run = a_run(collector, tmp_path)
    feed(run, collector, generated(1_000))
    run._snapshot()
    tried = []

    def fails(*_: Any) -> Any:
        tried.append(1)
        raise ZeroDivisionError

    viewer = Viewer(run, [("broken", "Broken", fails)])
    viewer._shown = "broken"
    for _ in range(3):
        viewer._renew()
    assert len(tried) == 1
    said: Any = viewer.columns["broken"][-1]
    assert "cannot be shown" in str(said.object)


def test_pages_of_older_snapshots_keep_no_recording(
    collector: Collector, tmp_path: Path, generated: Generated
) -> None:
    run = a_run(collector, tmp_path)
    feed(run, collector, generated(1_000))
    viewer = Viewer(run, PAGES)
    stores = []
    for name in viewer.columns:
        latest = snapshot(run)
        visit(viewer, name)
        stores.append(weakref.ref(latest.store))
        del latest
    gc.collect()
    assert run.latest is not None
    assert [store() for store in stores if store()] == [run.latest.store]


def test_a_page_that_is_made_anew_shows_the_span_that_was_chosen(
    collector: Collector, tmp_path: Path, generated: Generated
) -> None:
    run = a_run(collector, tmp_path)
    feed(run, collector, generated(1_000))
    viewer = Viewer(run, PAGES)
    spans = []
    for chosen in ((), (0.1, 0.2), ()):
        snapshot(run)
        viewer._not_before = 0
        visit(viewer, "timeline")
        assert viewer._stock is not None
        span = viewer._stock[1].x_range
        spans.append((span.start, span.end))
        if chosen:
            span.update(start=chosen[0], end=chosen[1])
    assert spans[0] == spans[1] == (0, run.latest.store.recording.wall if run.latest else None)
    assert spans[2] == (0.1, 0.2)


def snapshot(run: Run) -> Snapshot:
    """One that is newer than all others."""
    run._snapshot()
    assert run.latest is not None
    return run.latest


def visit(viewer: Viewer, name: str) -> None:
    """What the server does when the browser shows another page."""
    viewer._hear("data", None, {"page": [name]})


def test_nothing_is_saved_over(collector: Collector, tmp_path: Path) -> None:
    run = a_run(collector, tmp_path)
    run.save("a run.1")
    with pytest.raises(RecordingNotWritable):
        run.save("a run.1.stageprof")


def test_the_stage_is_known_before_the_first_task(collector: Collector, tmp_path: Path) -> None:
    run = a_run(collector, tmp_path)
    collector.live.now["scheduler tcp://s:1"] = live_step("materialize")
    assert (run.status()["stage"], run.status()["known"]) == ("construction", 0)
    assert run.status()["steps"] == [("scheduler", "materialize")]


def live_step(name: str) -> int:
    from stageprof_runtime.stage import STEP

    return STEP[name]


def test_units_hold_half_a_day() -> None:
    assert 2**32 * UNIT_NS / 1e9 > 11 * 3600


# -- in a browser -------------------------------------------------------------------------------

_DRAWING = "Object.values(stageprof.apps.live?.drawings ?? {})[0]"


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
        for number, part in enumerate(np.array_split(np.arange(len(all_batches)), 8)):
            for i in part:
                collector.take(all_batches[i])
            time.sleep(0.3)
            if number == 4:  # somebody else begins to look
                later = page.context.new_page()
                later.goto(app.url)
        for each in (page, later):
            each.wait_for_function(f"{_DRAWING}?.boxes.count === 10000")
        later.close()
        assert page.evaluate(f"{_DRAWING}.next") == 10_000
        lengths = page.evaluate(
            f"{_DRAWING}.boxes.rows.reduce((s, r) => s + r.length.subarray(0, r.n)"
            ".reduce((a, b) => a + b, 0), 0)"
        )
        assert lengths == int(run.growth.boxes().length.sum())
        page.locator("[data-sp-page=overview]").click()
        page.locator("[data-sp-view=overview] .sp-stagebar").wait_for()
        page.locator("[data-sp-page=live]").click()
        page.get_by_text("Stop recording").click()
        page.wait_for_function("stageprof.apps.live && true")
        until(lambda: run.state == "stopped")
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
        until(lambda: run.latest and run.latest.store.recording.complete)
        page = watched.page
        page.goto(f"{app.url}#layers")
        age = page.locator("[data-sp-view=layers] [data-sp-age]")
        age.wait_for()
        # what still arrives may change it once or twice, but not so often
        for _ in range(5):
            was = age.text_content()
            page.locator(f"[data-sp-age]:not(:text-is('{was}'))").first.wait_for()


def test_a_page_without_a_run_has_no_clock(
    watched: Watched, reported: Callable[[int], str]
) -> None:
    page = watched.open(reported(1_000))
    assert page.evaluate("stageprof.live.aging") is None


# -- with a real cluster --------------------------------------------------------------------------


@pytest.mark.cluster
def test_a_real_cluster_is_followed_and_left_as_it_was(watched: Watched, tmp_path: Path) -> None:
    with separate(workers=1) as client:
        line = [sys.executable, "-m", "stageprof", "app", scheduler_of(client), "--no-browser"]
        process = subprocess.Popen(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        page = watched.page
        page.goto(url)
        client.gather(client.map(lambda x: x + 1, range(5)))
        page.wait_for_function(f"{_DRAWING}?.boxes.count === 5")
        page.get_by_text("5 of 5 tasks done").wait_for()
        page.locator("[data-sp-live=state]", has_text="recording").wait_for()
        # a task is seen while it runs, with its age
        go = Event("go", client=client)
        ended = client.submit(lambda: Event("go").wait(), key="waits-1")
        page.locator("[data-sp-live-now] li", has_text="waits-1").wait_for()
        page.wait_for_function(f"{_DRAWING}.boxes.opened.size === 1")
        go.set()
        ended.result()
        page.wait_for_function(f"{_DRAWING}.boxes.opened.size === 0")
        assert page.evaluate(f"{_DRAWING}.boxes.count") == 6
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        soon(lambda: remains.everywhere(client) == [], 15)
    assert process.returncode == 0
    assert "was not saved" in err
