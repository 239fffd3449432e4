"""Whatever a file may be, every command says so in one line and ends with status 2."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from faces.conftest import recorded
from reliability.badfiles import BAD, CONTENTS, made
from stageprof import app as pages
from stageprof.cli import main, stageprof
from stageprof.export import FORMATS
from stageprof_runtime.flight.segments import SUFFIX

__all__ = ["recorded"]  # a fixture

#: How each command is told of a recording: FILE stands for the bad one, GOOD for a sound one, OUT
#: for a new file, DIR for a folder.
READING: Final[dict[str, tuple[str, ...]]] = {
    "show": ("show FILE", "show --json FILE", "show --markdown FILE", "show --findings FILE"),
    "report": ("report FILE -o OUT",),
    "app": ("app FILE --no-browser", "app GOOD FILE --no-browser"),
    "check": ("check --like FILE -c pass",),
    "compare": ("compare FILE GOOD", "compare GOOD -- FILE --json", "compare GOOD FILE --html OUT"),
    "baseline save": ("baseline save FILE --dir DIR --branch b",),
    "baseline list": ("baseline list DIR --like FILE",),
    "attach": ("attach --dump FILE -o OUT",),
    "export": tuple(f"export FILE --to {form} -o OUT" for form in FORMATS),
    "flame": ("flame FILE -o OUT",),
    "snakeviz": ("snakeviz FILE -o OUT",),
    "inspect": ("inspect FILE",),
}
#: The same of what they write, for those that write to a path: a recording, a page, a folder.
WRITING: Final[dict[str, tuple[str, ...]]] = {
    "run": ("run -o FILE -c pass",),
    "demo": ("demo -o FILE",),
    "report": ("report GOOD -o FILE",),
    "compare": ("compare GOOD GOOD --html FILE",),
    "baseline save": ("baseline save GOOD --dir FILE --branch b",),
    "baseline list": ("baseline list FILE",),
    "baseline prune": ("baseline prune FILE --keep 1",),
    "export": tuple(f"export GOOD --to {form} -o FILE" for form in ("csv", "perfetto")),
}
#: No path for output, whatever it is that is written.
UNWRITABLE: Final = (
    "nul",
    pytest.param("loop", marks=pytest.mark.nightly),  # pages are made before they are written
    pytest.param("too long", marks=pytest.mark.nightly),
)

#: What of a bad file is no error: a folder may be one of recordings, and what is in a file that
#: opens is `inspect`'s to show.
FINE: Final = {
    ("app FILE --no-browser", "folder"),
    *(("inspect FILE", kind) for kind in ("header no object", "no batch", "no batch that is one")),
    ("inspect FILE", "a bomb"),
}


def leaves(group: click.Group, *path: str) -> Iterator[str]:
    """The commands that do something, with the names that lead to them."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from leaves(command, *path, name)
        else:
            yield " ".join((*path, name))


def test_no_command_is_forgotten() -> None:
    """B2: every subcommand is in one of the tables; `pytest --stageprof=` has tests of its own."""
    assert set(leaves(stageprof)) == READING.keys() | WRITING.keys()


@pytest.fixture(autouse=True)
def nothing_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app over a bad file would wait for ever."""

    def served(*_: object, **__: object) -> None:
        raise AssertionError("the app was shown")

    monkeypatch.setattr(pages, "show", served)


@pytest.fixture(scope="module")
def good(recorded: Path) -> Path:
    """A sound recording."""
    return recorded


Say = Callable[..., "tuple[int, str]"]


@pytest.fixture
def say(good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs a line of words; the exit status, and what is on stderr."""

    def run(line: str, file: str) -> tuple[int, str]:
        (tmp_path / "dir").mkdir(exist_ok=True)
        given = {"FILE": file, "GOOD": str(good), "OUT": str(tmp_path / "out"),
                 "DIR": str(tmp_path / "dir")}  # fmt: skip
        capsys.readouterr()
        status = main([given.get(word, word) for word in line.split()])
        return status, capsys.readouterr().err

    return run


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_one_line_and_status_2(say: Say, tmp_path: Path, kind: str) -> None:
    """B2: every subcommand x 19 bad files; no traceback, nothing is left where it would write."""
    file = made(kind, tmp_path)
    for lines in READING.values():
        for line in lines:
            if (line, kind) in FINE:
                continue
            status, said = say(line, file)
            assert (status, said.count("\n")) == (2, 1), f"{line}: {status}\n{said}"
            assert said.startswith("stageprof: "), line
            assert "Traceback" not in said
            assert not os.path.lexists(tmp_path / "out"), line
            assert not any((tmp_path / "dir").iterdir()), line


@pytest.mark.parametrize("kind", UNWRITABLE)
def test_a_path_that_cannot_be_is_one_line_and_status_2(
    say: Say, tmp_path: Path, kind: str
) -> None:
    """B2: the same of what is written."""
    file = made(kind, tmp_path)
    for lines in WRITING.values():
        for line in lines:
            status, said = say(line, file)
            assert (status, said.count("\n")) == (2, 1), f"{line}: {status}\n{said}"
            assert "Traceback" not in said


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_bad_segment_is_one_line_and_status_2(say: Say, tmp_path: Path, kind: str) -> None:
    """B2: `attach --dump` of a flight recorder's folder in which somebody put something else."""
    folder = tmp_path / "segments"
    folder.mkdir()
    shutil.move(made(kind, tmp_path), folder / f"{1:08}{SUFFIX}")
    status, said = say("attach --dump FILE -o OUT", str(folder))
    assert (status, said.count("\n")) == (2, 1), said
    assert "Traceback" not in said
    assert not os.path.lexists(tmp_path / "out")


def test_a_disk_that_fails_while_it_is_read_is_one_line(
    say: Say, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B2: an error of the disk in the middle of a recording ends the reading there."""

    def broken(self: object, *_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("stageprof_collectors.storage.frames.Frames._read", broken)
    status, said = say("show FILE", str(good))
    assert (status, said.count("\n")) == (2, 1)
    assert "Input/output error" in said
