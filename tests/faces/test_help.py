"""What was typed wrongly is said in the words of the command, and help says where to read on."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from stageprof.cli import PAGES, main
from stageprof.commands import COMMANDS

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("args", "page"),
    [
        (("run", "-o"), "run"),
        (("run", "-m"), "run"),
        (("run", "-c"), "run"),
        (("attach", "tcp://x:1", "--for"), "attach"),
        (("baseline", "save", "--dir"), "baseline"),
        (("nonsense",), ""),
    ],
)
def test_wrong_use_names_the_help_of_that_command(
    args: tuple[str, ...], page: str, capsys: Capture
) -> None:
    assert main(list(args)) == 2
    assert capsys.readouterr().err.endswith(f"see stageprof {page} --help\n".replace("  ", " "))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("attach", "x/previous", "--dump", "-o", "r"), "no folder x/previous: this recorder had"),
        (("attach", "y/previous", "--dump", "-o", "r"), "no folder y/previous; expected one that"),
        (("attach", "/y:0", "--dump", "-o", "r"), "no folder /y:0; expected one that"),
        (("check", "--limit", "0", "-c", "pass"), "--limit 0; expected a time above 0"),
        (("app", "nodir/"), "no file or folder nodir/; expected a *.stageprof recording, a folder"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_command(
    args: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    assert main(list(args)) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"stageprof: {said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_help_gives_the_address_of_each_page_that_it_names(
    command: click.Command, capsys: Capture
) -> None:
    assert main([str(command.name), "--help"]) == 0
    out = capsys.readouterr().out
    for page in set(re.findall(r"docs/(\w+\.md)", out.replace(PAGES, ""))):
        assert f"  {PAGES}{page}\n" in out
        assert (Path(__file__).parents[2] / "docs" / page).is_file()
