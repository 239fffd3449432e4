"""The list of recordings in a folder: nothing blocks it, and no name leads out of the folder."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clusters import soon
from serving import running
from stageprof.app import listed
from stageprof.cli import main
from stageprof_collectors.storage import frames
from stageprof_collectors.storage.file import Writer
from stageprof_collectors.summary import summarize
from stageprof_runtime.errors import StageprofError, UsageError
from stageprof_ui import opening
from stageprof_ui import shelf as shelves
from stageprof_ui.columns import library
from stageprof_ui.columns.library import Content, Entry
from stageprof_ui.shelf import Shelf
from stageprof_ui.store import Store
from ui.conftest import Watched, overhang
from ui.opened import opened
from ui.test_boxes import stolen

Generated = Callable[[int], Path]


@pytest.fixture
def folder(tmp_path: Path, generated: Generated) -> Path:
    """A whole recording, one that was cut, one that is none, and what is to be left alone."""
    whole = generated(1_000).read_bytes()
    (tmp_path / "whole.stageprof").write_bytes(whole)
    (tmp_path / "cut.stageprof").write_bytes(whole[: len(whole) * 2 // 3])
    (tmp_path / "none.stageprof").write_bytes(b"something else")
    with Writer(tmp_path / "empty.stageprof", {"label": "nothing", "started": "x"}):
        pass
    (tmp_path / "other.txt").write_text("no recording")
    (tmp_path / "folder.stageprof").mkdir()
    (tmp_path / "link.stageprof").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "fifo.stageprof")
    for path in tmp_path.glob("*.stageprof"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, (1e9, 1e9))
    return tmp_path


@pytest.fixture
def shelf(folder: Path) -> Iterator[Shelf]:
    with Shelf(folder) as made:
        yield made


def read(shelf: Shelf) -> dict[str, Content]:
    """The contents of all files, once all were read."""
    deadline = time.monotonic() + 30
    while any(line.content is None for line in shelf.lines):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return {line.entry.name: line.content for line in shelf.lines if line.content}


def test_only_regular_files_are_listed(folder: Path) -> None:
    names = {entry.name for entry in library.listing(folder)}
    assert names == {f"{n}.stageprof" for n in ("whole", "cut", "none", "empty")}


def test_every_file_is_read_or_said_to_be_damaged(shelf: Shelf) -> None:
    found = read(shelf)
    whole, cut = found["whole.stageprof"], found["cut.stageprof"]
    assert whole.tasks == 1_000
    assert whole.wall_s is not None
    assert whole.wall_s > 0
    assert whole.trouble == ""
    assert "incomplete" in cut.trouble
    assert cut.wall_s is not None
    assert "expected a *.stageprof recording" in found["none.stageprof"].trouble
    assert found["empty.stageprof"].trouble.startswith("holds no event")


def test_a_task_that_was_stolen_is_one_task() -> None:
    """Its first worker only had it."""
    recording = stolen()
    assert library._content(recording, summarize(recording)).tasks == 2


def test_a_new_file_appears_and_a_changed_one_is_read_again(
    shelf: Shelf, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(shelf)
    monkeypatch.setattr(shelves, "SETTLED_S", -1.0)
    (folder / "none.stageprof").write_bytes((folder / "whole.stageprof").read_bytes())
    deadline = time.monotonic() + 30
    while read(shelf)["none.stageprof"].tasks != 1_000:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_file_that_is_being_written_is_not_read_again_and_again() -> None:
    entry = Entry("x", 1, 5_000_000_000)
    assert not shelves.settled(entry, 6.0)
    assert shelves.settled(entry, 8.0)


def test_a_row_has_nothing_of_the_run_that_its_file_held_before(
    shelf: Shelf, folder: Path, generated: Generated
) -> None:
    """While a new run is written over it, which is read once it has settled."""
    path = folder / "whole.stageprof"
    assert read(shelf)[path.name].tasks == 1_000
    path.write_bytes(generated(10_000).read_bytes())
    soon(lambda: {e.name: e.size for e in shelf.entries}[path.name] == path.stat().st_size)
    [line] = [line for line in shelf.lines if line.entry.name == path.name]
    assert line.content is None
    assert library.facts(folder, shelf.lines)["unread"] == 1
    os.utime(path, (1e9, 1e9))
    soon(lambda: read(shelf)[path.name].tasks == 10_000)


def test_a_recording_may_take_what_is_allowed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--max-memory`, in the list and on its pages."""
    monkeypatch.setattr(frames, "MAX_READ", 20_000)
    for allowed in (None, 10**9):
        with Shelf(folder, max_memory=allowed) as shelf:
            trouble = read(shelf)["whole.stageprof"].trouble
            assert ("allow more with --max-memory" in trouble) == (allowed is None)
            assert opened(shelf, "whole.stageprof").recording.complete == (allowed is not None)


def test_the_option_for_that_reaches_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[int | None] = []

    def content(*_: object) -> Content:
        allowed.append(_[-1])  # type: ignore[arg-type]
        return Content()

    monkeypatch.setattr(shelves, "content", content)
    monkeypatch.setattr("stageprof.app.show", lambda *_, **__: soon(lambda: len(allowed) == 4))
    assert main(["app", str(folder), "--max-memory", "1 GB"]) == 0
    assert set(allowed) == {10**9}


def test_a_recording_is_opened_by_its_name_and_kept(shelf: Shelf) -> None:
    store = opened(shelf, "whole.stageprof")
    assert store.recording.wall > 0
    assert opened(shelf, "whole.stageprof") is store


def test_pages_are_made_by_a_thread_once_and_nobody_waits_for_them_long(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop that asks is that of everybody who looks."""
    monkeypatch.setattr(opening, "SOON_S", 0.01)
    go, made = threading.Event(), []

    def make(store: Store) -> None:
        made.append(threading.current_thread().name)
        assert go.wait(30)

    assert shelf.made("whole.stageprof", make) is None
    assert shelf.made("whole.stageprof", make) is None
    go.set()
    store = opened(shelf, "whole.stageprof")
    assert store is shelf.made("whole.stageprof", make)
    assert made == ["stageprof-open"]
    for _ in range(2):
        with pytest.raises(UsageError):
            shelf.made("nothing.stageprof", make)


@pytest.mark.parametrize(
    "name",
    [
        "../whole.stageprof", "/etc/passwd", "./whole.stageprof", "link.stageprof",
        "fifo.stageprof", "folder.stageprof", "other.txt", "whole.stageprof\0", "", ".",
        "%2e%2e/whole.stageprof", "nothing.stageprof",
    ],
)  # fmt: skip
def test_a_name_that_is_not_in_the_list_never_reaches_the_file_system(
    shelf: Shelf, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B8, T21: by no way of writing a path."""

    def never(*_: object) -> None:
        raise AssertionError("the file system was asked")

    monkeypatch.setattr(shelves.Shelf, "_opened", never)
    with pytest.raises(UsageError):
        shelf.made(name, lambda _: None)


def test_a_file_that_became_a_link_is_not_followed(shelf: Shelf, folder: Path) -> None:
    """B8: between the listing and the opening."""
    path = folder / "cut.stageprof"
    path.unlink()
    path.symlink_to(folder / "whole.stageprof")
    with pytest.raises(StageprofError):
        opened(shelf, "cut.stageprof")


def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Shelf(tmp_path / "nowhere")


def test_what_makes_no_sense_on_opening_is_said_as_for_a_single_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the bare text of some exception."""
    from stageprof_ui import app as pages

    def fails(*_: object, **__: object) -> None:
        raise IndexError(7)

    refused: list[str] = []
    monkeypatch.setattr("stageprof.app._made", fails)
    monkeypatch.setattr(pages, "asked", lambda: "whole.stageprof")
    monkeypatch.setattr(pages, "refusal", refused.append)
    monkeypatch.setattr("stageprof_ui.server.App", lambda made, _port: made)
    with listed(str(folder)) as made:
        soon(lambda: made() or refused)  # type: ignore[operator]
    [why] = refused
    assert "whole.stageprof cannot be made sense of (IndexError: 7)" in why
    assert "stageprof inspect" in why


@pytest.mark.parametrize(
    "targets",
    [
        ["FOLDER", "FOLDER/whole.stageprof"], ["tcp://127.0.0.1:1", "FOLDER"], [],
        ["FOLDER/whole.stageprof", "FOLDER/none.stageprof"],
        ["FOLDER/none.stageprof"],
    ],
)  # fmt: skip
def test_bad_arguments_are_one_line_and_status_2(
    folder: Path, targets: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    line = [target.replace("FOLDER", str(folder)) for target in targets]
    assert main(["app", *line, "--no-browser"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# -- in a browser -------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1440, 390])
def test_the_list_fills_in_and_leads_to_the_pages_of_each(
    watched: Watched, folder: Path, width: int
) -> None:
    bad = folder / "<img src=x onerror=window.hacked=1>.stageprof"
    bad.write_bytes((folder / "whole.stageprof").read_bytes())
    with listed(str(folder)) as app, running(app):
        page = watched.page
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(app.url)
        page.get_by_text("5 recordings, newest first.").wait_for()
        assert overhang(page) <= 0
        page.locator("select").select_option("by name")
        page.get_by_text("5 recordings, by name.").wait_for()
        page.get_by_label("Find").press_sequentially("IMG onerror")
        page.get_by_text("1 of 5 recordings, by name.").wait_for()
        page.locator("a", has_text="<img").click()
        page.locator("[data-sp-view=overview] .sp-stagebar").wait_for()
        assert page.evaluate("window.hacked") is None
        page.get_by_text("All recordings").click()
        page.locator("a", has_text="whole.stageprof").wait_for()
        for name in ("../whole.stageprof", "/etc/passwd", "link.stageprof", "%00"):
            page.goto(f"http://127.0.0.1:{app.port}/?recording={name}")
            page.get_by_text("there is no such recording in the folder").wait_for()
        page.goto(f"http://127.0.0.1:{app.port}/?recording=none.stageprof")
        page.get_by_text("expected a *.stageprof recording").wait_for()
