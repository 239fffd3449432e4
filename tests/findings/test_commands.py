"""Findings on the command line, quiet runs, and the line that says how far the diagnosis is."""

from __future__ import annotations

import fcntl
import io
import os
import struct
import subprocess
import sys
import termios

import pytest

import stageprof
from findings.conftest import Package
from findings.made import THEIRS, made
from stageprof.cli import main
from stageprof.progress import Progress
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.findings.settings import DEFAULTS


@pytest.mark.parametrize("form", [(), ("--findings",), ("--markdown",), ("--json",)])
def test_command_shows_findings_of_every_rule_there_is(
    form: tuple[str, ...], package: Package, capsys: pytest.CaptureFixture[str]
) -> None:
    package(THEIRS.replace("(2.0, 3.0)", "(9e8, 9e8)"))
    with stageprof.profile("r.stageprof"):
        pass
    assert main(["show", *form, "r.stageprof"]) == 0
    assert "from 7 files" in capsys.readouterr().out


def test_rule_of_an_installed_package_is_asked_after_a_run(package: Package) -> None:
    folder = package(THEIRS)
    done = subprocess.run(
        [sys.executable, "-m", "stageprof", "run", "-c", "pass"],
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "from 7 files" in done.stderr


@pytest.mark.parametrize("quiet", ["-q", "--quiet"])
def test_quiet_run_says_nothing_and_records_all_the_same(
    quiet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", quiet, "-o", "r.stageprof", "-c", "print(6 * 7)"]) == 0
    assert capsys.readouterr() == ("42\n", "")
    assert stageprof.open("r.stageprof").complete


def test_short_options_can_be_joined(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "-qo", "r.stageprof", "-c", "import sys; print(sys.argv[1:])", "-q"]) == 0
    assert capsys.readouterr() == ("['-q']\n", "")


def test_one_form_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--findings", "--json", "r.stageprof"]) == 2
    assert "expected one form" in capsys.readouterr().err


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_and_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = _Terminal()
    with Progress(out) as progress:
        progress(3, 40, "tiny-tasks")
    assert "3 of 40 rules asked, tiny-tasks" in out.getvalue()
    assert out.getvalue().endswith("\r\x1b[2K")


def test_progress_takes_one_line_of_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one that goes on in the next, only that would be cleared."""
    monkeypatch.setenv("TERM", "xterm")
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    with os.fdopen(slave, "w", encoding="utf-8") as out, Progress(out) as progress:
        progress(3, 40, "tiny-tasks")
        shown = os.read(master, 1000).decode()
    os.close(master)
    assert shown.removeprefix("\r\x1b[2K") == "stageprof  what to change: 3 of 40 rule"


def test_progress_is_silent_elsewhere() -> None:
    out = io.StringIO()
    with Progress(out) as progress:
        progress(3, 40, "tiny-tasks")
    assert out.getvalue() == ""


def test_finding_is_part_of_the_api() -> None:
    assert stageprof.Finding is Finding
    assert stageprof.Severity is Severity
    assert made().innocence(DEFAULTS) == made().innocence()
