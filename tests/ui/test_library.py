"""The list of recordings in a folder: nothing blocks it, and no name leads out of the folder."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serving import running
from stageprof.app import listed
from stageprof.cli import main
from stageprof_collectors.findings.settings import DEFAULTS
from stageprof_collectors.storage.file import Writer
from stageprof_runtime.errors import StageprofError, UsageError
from stageprof_ui import shelf as shelves
from stageprof_ui import words
from stageprof_ui.columns import library
from stageprof_ui.columns.library import Content, Entry, Head, Line
from stageprof_ui.shelf import Shelf
from stageprof_ui.store import Store
from ui.conftest import Watched, overhang

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
    assert found["none.stageprof"].trouble.startswith("damaged")
    assert found["empty.stageprof"].trouble.startswith("holds no event")


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


def test_a_recording_is_opened_by_its_name_and_kept(shelf: Shelf) -> None:
    store = shelf.store("whole.stageprof")
    assert store.recording.wall > 0
    assert shelf.store("whole.stageprof") is store


def test_pages_are_made_by_a_thread_once_and_nobody_waits_for_them_long(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop that asks is that of everybody who looks."""
    monkeypatch.setattr(shelves, "SOON_S", 0.01)
    go, made = threading.Event(), []

    def make(store: Store) -> None:
        made.append(threading.current_thread().name)
        assert go.wait(30)

    assert shelf.made("whole.stageprof", make) is None
    assert shelf.made("whole.stageprof", make) is None
    go.set()
    for thread in threading.enumerate():
        if thread.name == "stageprof-open":
            thread.join(30)
    monkeypatch.setattr(shelves, "SOON_S", 30)
    store = shelf.made("whole.stageprof", make)
    assert store is shelf.made("whole.stageprof", make) is shelf.store("whole.stageprof")
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
        shelf.store(name)


def test_a_file_that_became_a_link_is_not_followed(shelf: Shelf, folder: Path) -> None:
    """B8: between the listing and the opening."""
    path = folder / "cut.stageprof"
    path.unlink()
    path.symlink_to(folder / "whole.stageprof")
    with pytest.raises(StageprofError):
        shelf.store("cut.stageprof")


def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Shelf(tmp_path / "nowhere")


def test_newest_first_by_the_start_of_the_run() -> None:
    lines = [
        Line(Entry("old", 1, 9 * 10**18), Head("", 100.0, "1970")),
        Line(Entry("new", 1, 1), Head("", 200.0, "1970")),
    ]
    rows = library.facts(Path("x"), lines)["rows"]
    assert [row["name"] for row in rows] == ["new", "old"]


def test_what_was_not_read_yet_says_so() -> None:
    page = words.html("library", **library.facts(Path("x"), [Line(Entry("a", 1, 1))]))
    assert "not read yet" in page
    assert "1 still being read" in page


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    page = words.html("library", **library.facts(tmp_path, []))
    assert "There is no recording" in page


def test_hostile_names_are_escaped_and_their_links_lead_nowhere_else() -> None:
    name = 'x"><img src=x>\u202e&recording=\udcff?#/../y.stageprof'
    line = Line(Entry(name, 1, 1), Head("<b>label", 1.0, "d"), Content(1.0, 1, None, "<i>bad"))
    page = words.html("library", **library.facts(Path("<u>"), [line]))
    for bad in ("<img", "<b>label", "<i>bad", "<u>", "\u202e"):
        assert bad not in page
    link = library.facts(Path("x"), [line])["rows"][0]["link"]
    assert link.startswith("/?recording=")
    assert not set(link[len("/?recording=") :]) & set("&?#/\"'<> ")


def test_old_recordings_beyond_what_is_listed_are_counted() -> None:
    lines = [Line(Entry(str(i), 1, i)) for i in range(10)]
    facts = library.facts(Path("x"), lines, most=4)
    assert len(facts["rows"]) == 4
    assert facts["left_out"] == 6


def test_content_never_raises(tmp_path: Path) -> None:
    assert library.content(tmp_path / "nothing", DEFAULTS).trouble.startswith("damaged")
    assert library.head(tmp_path / "nothing") == Head("", 0.0, "")


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
