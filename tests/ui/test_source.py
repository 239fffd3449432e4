"""Lines of the user's program: read with care, shown in the app, kept out of what is sent on."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from findings.crowded import CLIENT, Program, pieces
from serving import running
from stageprof.app import compared, embedded, served, written
from stageprof.app import store as stored
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import LINE
from stageprof_ui.columns import layers
from stageprof_ui.columns import source as sources
from stageprof_ui.columns.source import LARGEST, quoted
from stageprof_ui.shelf import Shelf
from stageprof_ui.store import Store
from stageprof_ui.views.layers import view
from ui import opened as opening
from ui.conftest import Watched

#: Bokeh 3.9 makes tables in a way that pandas 3.1 advises against.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")

#: When recordings begin here, seconds since 1970, and what their headers say.
START = 1_900_000_000
STARTED = datetime.fromtimestamp(START, UTC).strftime("%Y-%m-%dT%H:%M:%S%z")
SECRET = "total = frame[frame.password == 'xyzzy'].sum()"
HOSTILE = "y = '<img src=x onerror=window.hacked=1>' # \x1b[31m\u202e {{ 7 * 7 }} $$x$$"


def program(path: Path, line: str = SECRET, changed: float = START - 60) -> Path:
    """A file whose second line is the one in question."""
    path.write_text(f"import dask\n    {line}  \nprint(1)\n", "utf-8")
    os.utime(path, (changed, changed))
    return path


def recorded(file: object, line: int = 2, started: str = STARTED) -> Recording:
    """A run of a layer that was made there."""
    made = Program()
    made.rows[CLIENT].append((LINE, f"sum-{'0' * 32}", str(file), line, 1))
    made.tasks(pieces(4), work=10)
    recording = made.recording()
    recording.store.header = {"started": started}
    return recording


def shown(recording: Recording, *, allowed: bool = True) -> str:
    (code,) = layers.layers(recording, sources=allowed)["code"]
    return str(code)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are opened to read their bytes from now on."""
    names: list[str] = []
    real: Any = Path.open

    def noted(path: Path, mode: str = "r", **more: Any) -> Any:
        if mode == "rb":
            names.append(str(path))
        return real(path, mode, **more)

    monkeypatch.setattr(Path, "open", noted)
    return names


# -- which lines ----------------------------------------------------------------------------------


def test_a_line_is_shown_as_it_is_in_its_file(tmp_path: Path, opened: list[str]) -> None:
    file = program(tmp_path / "etl.py")
    assert shown(recorded(file)) == SECRET
    assert opened == [str(file)]


def test_no_file_is_read_unless_that_is_asked_for(tmp_path: Path, opened: list[str]) -> None:
    assert shown(recorded(program(tmp_path / "etl.py")), allowed=False) == ""
    assert opened == []


def test_a_file_is_read_once_for_all_its_lines(tmp_path: Path, opened: list[str]) -> None:
    file = str(program(tmp_path / "etl.py"))
    found = quoted(recorded(file), [(file, n) for n in (0, 1, 2, 3, 4, -1, 2)])
    assert found == {(file, 1): "import dask", (file, 2): SECRET, (file, 3): "print(1)"}
    assert opened == [file]


def test_lines_end_where_python_ends_them(tmp_path: Path) -> None:
    file = tmp_path / "etl.py"
    file.write_bytes("\ufeffa = '\u2028\x0c\x85'\r\nb = 'é'\r\nc = 3".encode())
    os.utime(file, (START, START))
    name = str(file)
    found = quoted(recorded(file), [(name, n) for n in (1, 2, 3)])
    assert found == {
        (name, 1): "a = '\\u2028\\x0c\\x85'",
        (name, 2): "b = 'é'",
        (name, 3): "c = 3",
    }


def test_what_is_no_utf8_is_shown_as_far_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "etl.py"
    file.write_bytes(b"x = '\xff'")
    os.utime(file, (START, START))
    assert shown(recorded(file, 1)) == "x = '\ufffd'"


def test_hostile_text_is_shown_by_its_numbers(tmp_path: Path) -> None:
    code = shown(recorded(program(tmp_path / "etl.py", HOSTILE)))
    assert "\\x1b[31m\\u202e" in code
    assert not {"\x1b", "\u202e"} & set(code)
    long = shown(recorded(program(tmp_path / "long.py", "x" * 10_000)))
    assert (len(long), long[-1]) == (200, "…")


# -- which files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("later", "seen"), [(-1e9, True), (0, True), (1, False), (1e6, False)])
def test_a_file_that_is_newer_than_the_recording_is_not_what_ran(
    tmp_path: Path, opened: list[str], later: float, *, seen: bool
) -> None:
    file = program(tmp_path / "etl.py", changed=START + later)
    assert bool(shown(recorded(file))) is seen
    assert bool(opened) is seen


@pytest.mark.parametrize("started", ["", "yesterday", "9" * 5000, "0001-01-01"])
def test_nothing_is_read_if_the_start_is_not_known(
    tmp_path: Path, opened: list[str], started: str
) -> None:
    assert shown(recorded(program(tmp_path / "etl.py", changed=0), started=started)) == ""
    assert opened == []


@pytest.mark.parametrize("name", ["secret.txt", "etl.pyc", "etl.py.bak", "py", ".ssh", "etl.PY"])
def test_other_files_are_never_read(tmp_path: Path, opened: list[str], name: str) -> None:
    assert shown(recorded(program(tmp_path / name))) == ""
    assert opened == []


def test_a_link_is_read_only_if_it_leads_to_a_python_file(
    tmp_path: Path, opened: list[str]
) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.symlink_to(program(tmp_path / "etl.py"))
    bad.symlink_to(program(tmp_path / "secret.txt"))
    (tmp_path / "circle.py").symlink_to(tmp_path / "circle.py")
    assert shown(recorded(good)) == SECRET
    assert shown(recorded(bad)) == ""
    assert shown(recorded(tmp_path / "circle.py")) == ""
    assert opened == [str(tmp_path / "etl.py")]


@pytest.mark.parametrize(("more", "seen"), [(0, True), (1, False)])
def test_a_large_file_is_never_read(
    tmp_path: Path, opened: list[str], more: int, *, seen: bool
) -> None:
    file = program(tmp_path / "etl.py")
    with file.open("ab") as end:
        end.write(b"#" * (LARGEST - file.stat().st_size + more))
    os.utime(file, (START, START))
    assert bool(shown(recorded(file))) is seen
    assert bool(opened) is seen


def test_only_so_many_files_are_read(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "FILES", 2)
    files = [str(program(tmp_path / f"{name}.py")) for name in "abc"]
    found = quoted(recorded(files[0]), [(file, 2) for file in files])
    assert opened == [file for file, _ in found] == files[:2]


def test_what_is_no_regular_file_is_neither_waited_for_nor_read(
    tmp_path: Path, opened: list[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    for name in ("pipe.py", "folder.py", "missing.py", "nul\0.py", "x" * 5000 + ".py"):
        assert shown(recorded(tmp_path / name)) == ""
    assert opened == []


def test_a_file_of_another_folder_is_not_taken_for_it(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "etl.py")
    monkeypatch.chdir(tmp_path)
    for name in ("etl.py", "./etl.py", "", "<string>", "<ipython-input-1>.py"):
        assert shown(recorded(name)) == ""
    assert opened == []


def test_a_file_that_may_not_be_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    recording = recorded(program(tmp_path / "etl.py"))
    monkeypatch.setattr(Path, "open", refused)
    assert shown(recording) == ""


# -- who sees them --------------------------------------------------------------------------------


def texts(page: Any) -> str:
    """All that the models of a page hold."""
    root = page.get_root()
    return str([model.properties_with_values() for model in root.references()])


def test_a_page_has_the_column_only_if_it_may_show_something(tmp_path: Path) -> None:
    recording = recorded(program(tmp_path / "etl.py"))
    held = {}
    for allowed in (False, True):
        store = Store(recording, sources=allowed)
        held[allowed] = texts(view(store, store.stock()))
    assert SECRET not in held[False]
    assert SECRET in held[True] or repr(SECRET)[1:-1] in held[True]


def test_a_report_and_a_notebook_hold_no_line(tmp_path: Path) -> None:
    recording = recorded(program(tmp_path / "etl.py"))
    written(recording, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "etl.py:2" in page
    assert "xyzzy" not in page
    notebook = texts(embedded(recording))
    assert "etl.py:2" in notebook
    assert "xyzzy" not in notebook


def test_who_does_not_ask_for_lines_gets_none(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "etl.py")
    assert [Store(recording).sources, stored(recording).sources] == [False, False]


def test_the_app_of_a_folder_may_show_lines(
    tmp_path: Path, generated: Callable[[int], Path]
) -> None:
    (tmp_path / "a.stageprof").write_bytes(generated(1_000).read_bytes())
    with Shelf(tmp_path) as shelf:
        assert opening.opened(shelf, "a.stageprof").sources


@pytest.mark.parametrize("several", [False, True])
def test_the_app_shows_a_hostile_line_as_text(
    watched: Watched, tmp_path: Path, *, several: bool
) -> None:
    recording = recorded(program(tmp_path / "etl.py", HOSTILE))
    app = compared([recording, recording]) if several else served(recording)
    with running(app):
        page = watched.page
        page.goto(app.url)
        page.locator("[data-sp-page=layers]").click()
        cell = page.locator("[data-sp-view=layers] .tabulator-cell", has_text="<img src=x")
        cell.first.wait_for()
        assert "{{ 7 * 7 }} $$x$$" in cell.first.inner_text()
        assert page.evaluate("window.hacked") is None
