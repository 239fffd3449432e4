"""What `stageprof run` has in common with Python and the magic: the name, and the report."""

from __future__ import annotations

from pathlib import Path

import pytest

import stageprof
from stageprof.cli import main
from stageprof_runtime.errors import UsageError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_recording_has_the_name_that_it_was_given() -> None:
    assert main(["run", "-q", "--name", "etl", "-o", "a.stageprof", "-c", "1"]) == 0
    assert stageprof.open("a.stageprof").summary.label == "etl"


def test_options_end_where_the_program_begins() -> None:
    """A value is not taken for the script, nor the program's own options for ours."""
    program = "import sys; sys.exit(sys.argv[1:] != ['--name', 'mine'])"
    Path("script.py").write_text(program)
    assert main(["run", "-q", "--name", "x", "script.py", "--name", "mine"]) == 0
    assert stageprof.open("script.stageprof").summary.label == "x"


@pytest.mark.parametrize("option", ["--report", "--html"])
def test_a_report_is_written_where_the_program_began(
    option: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(stageprof.Recording, "report", lambda _, path, __: written.append(path))
    assert main(["run", "-q", option, "r.html", "-c", "import os; os.chdir('/')"]) == 0
    assert written == [str(folder / "r.html")]


def test_a_report_that_fails_costs_nothing_of_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise UsageError("no room")

    monkeypatch.setattr(stageprof.Recording, "report", fails)
    assert main(["run", "-q", "--report", "r.html", "-c", "import sys; sys.exit(3)"]) == 3
    assert capsys.readouterr().err == "stageprof: no report (no room)\n"


def test_what_draws_a_report_is_looked_for_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["run", "--report", "r.html", "-c", "print('it ran')"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("stageprof: the app needs bokeh, which is not installed")
