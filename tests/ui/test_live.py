"""A run that goes on: nothing is lost, doubled or sent too fast, and it ends in good order."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Event

import remains
from clusters import scheduler_of, separate, soon
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.collector import Collector
from stageprof_runtime.errors import RecordingNotWritable, UsageError
from stageprof_ui import browser
from stageprof_ui.app import PAGES
from stageprof_ui.live import Run
from stageprof_ui.views.live import MOST, Viewer
from ui.conftest import Watched
from ui.followed import DRAWING, Told, a_run, batches, feed

Generated = Callable[[int], Path]


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


def test_what_the_time_line_has_no_row_for_is_said(collector: Collector, tmp_path: Path) -> None:
    run = a_run(collector, tmp_path)
    assert run.trouble == ""
    run.growth.crowded = 3
    assert run.trouble.startswith("3 tasks overlapped too many others")


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


def test_who_comes_later_begins_with_all_that_was(fed: Run) -> None:
    viewer = Viewer(fed, [])
    message = viewer._message()
    assert (message["first"], len(message["row"][0])) == ([1_000], 0)


@pytest.mark.usefixtures("quick")
def test_a_run_that_is_stopped_has_a_last_snapshot_of_all(
    tmp_path: Path, generated: Generated
) -> None:
    collector = Collector(None, "a cluster", savable=True)
    with a_run(collector, tmp_path) as run:
        for batch in batches(generated(1_000)):
            collector.take(batch)
        soon(lambda: run.latest)
        assert run.status()["state"] == "recording"
        run.stop()
        soon(lambda: run.latest and run.latest.store.recording.complete)
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
        soon(lambda: run.state == "gone")
        assert not run.running
        run.save("x.stageprof")
    assert Recording.open(tmp_path / "x.stageprof").complete


@pytest.mark.usefixtures("quick")
def test_a_connection_that_is_lost_is_not_the_end_of_the_cluster(tmp_path: Path) -> None:
    """Asked before it is closed, which nobody can tell from an end afterwards."""
    collector = Collector(None, savable=True)
    status = ["running"]

    def end() -> None:
        collector.close()
        status[:] = ["closed"]

    alive, lost = (lambda: status == ["running"]), (lambda: status == ["connecting"])
    with Run(collector, alive=alive, lost=lost, end=end, folder=tmp_path) as run:
        status[:] = ["connecting"]
        soon(lambda: not run.running)
        assert run.state == "lost"


def test_every_state_has_its_words() -> None:
    """None says that it is kept, for it is in memory until somebody saves it."""
    script = browser.script()
    words = script[script.index("const STATES") :].partition("};")[0]
    for state in ("recording", "stopping", "stopped", "failed", "gone", "lost"):
        assert f"{state}: " in words
    assert words.count("until the app ends: save it") == 2
    assert "kept" not in words


@pytest.mark.usefixtures("quick")
def test_a_recording_that_has_stopped_by_itself_says_so_everywhere(
    tmp_path: Path, generated: Generated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the live page, on those of its snapshots, where it is saved, and after the end."""
    collector = Collector(None, "a cluster", savable=True)
    all_ = batches(generated(10_000))
    with a_run(collector, tmp_path) as run:
        viewer = Viewer(run, PAGES)
        for batch in all_[: len(all_) // 2]:
            collector.take(batch)
        soon(lambda: run.latest)
        assert (run.status()["state"], run.trouble) == ("recording", "")
        monkeypatch.setattr(collector.growing, "_max_memory", 1)
        for batch in all_[len(all_) // 2 :]:
            collector.take(batch)
        soon(lambda: run.failed)
        assert run.status()["state"] == "failed"
        assert "nothing more is kept: in memory" in run.status()["trouble"]
        assert "nothing more is kept: in memory" in head(viewer, run)
        viewer._save("part")
        assert viewer._said == "saved as part.stageprof, as it is now; it is incomplete"
        run.stop()
        soon(lambda: run.latest and run.latest.final)
        assert "nothing more is kept" in run.trouble
        assert "recording incomplete" in head(viewer, run)
    assert not Recording.open(tmp_path / "part.stageprof").complete


def head(viewer: Viewer, run: Run) -> str:
    """What a page that is made from the latest snapshot says first."""
    assert run.latest is not None
    column = viewer.columns["workers"]
    viewer._make("workers", column, run.latest)
    first: Any = column[0]
    return str(first.object)


@pytest.mark.usefixtures("quick")
def test_an_end_that_fails_is_said(tmp_path: Path) -> None:
    collector = Collector(None, savable=True)

    def end() -> None:
        collector.close()
        raise OSError("<b>no\x1b")

    with Run(collector, alive=lambda: True, end=end, folder=tmp_path) as run:
        run.stop()
        soon(lambda: run.state == "stopped")
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
        soon(lambda: run.latest and run.latest.store.recording.complete)
    assert "no end" in run.trouble


def test_a_gap_is_said_beside_what_else_is_wrong(
    fed: Run, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:

    def fails(*_: object) -> None:
        raise ValueError("long " * 200)

    with monkeypatch.context() as broken:
        broken.setattr(fed.growth, "look", fails)
        broken.setattr(collector, "snapshot", fails)
        fed._look()
        fed._snapshot()
    both = fed.trouble
    fed._snapshot()
    assert "the time line has a gap" in both
    assert "pages cannot be made now" in both
    assert fed.trouble.startswith("the time line has a gap")
    assert "pages cannot be made now" not in fed.trouble


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
        page.wait_for_function(f"{DRAWING}?.boxes.count === 5")
        page.get_by_text("5 of 5 tasks done").wait_for()
        page.locator("[data-sp-live=state]", has_text="recording").wait_for()
        # a task is seen while it runs, with its age
        go = Event("go", client=client)
        ended = client.submit(lambda: Event("go").wait(), key="waits-1")
        page.locator("[data-sp-live-now] li", has_text="waits-1").wait_for()
        page.wait_for_function(f"{DRAWING}.boxes.opened.size === 1")
        go.set()
        ended.result()
        page.wait_for_function(f"{DRAWING}.boxes.opened.size === 0")
        page.wait_for_function(f"{DRAWING}.boxes.count === 6")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        soon(lambda: remains.everywhere(client) == [], 15)
    assert process.returncode == 0
    assert "was not saved" in err
