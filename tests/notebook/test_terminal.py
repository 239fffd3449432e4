"""`%stageprof` in IPython on a terminal: a line in its last row for the time, then the summary."""

from __future__ import annotations

import os
import pty
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Final

import pytest

pytest.importorskip("IPython", reason="IPython is not installed")

ROWS, COLUMNS = 24, 100
#: Nothing is kept in the user's folder, and a terminal that answers no question is asked none.
_COMMAND: Final = (
    sys.executable, "-m", "IPython", "--no-banner", "--no-confirm-exit", "--no-tip",
    "--HistoryManager.enabled=False", "--InteractiveShell.colors=nocolor",
)  # fmt: skip
_QUIET: Final = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "PYTHONWARNINGS": "ignore"}
#: Tasks that print, and go on when they may: what is shown meanwhile can be looked at.
_TASKS: Final = """\
import dask, os, time
def waits(i):
    os.write(1, f"line {i}\\n".encode())
    while not os.path.exists("go on"):
        time.sleep(0.02)
    return i

made = [dask.delayed(waits)(i) for i in range(4)]
"""


class Terminal:
    """What IPython is typed, and all that it sent."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._typed = 0
        self.sent = ""

    def type(self, text: str) -> None:
        """Paste a cell, run it, and wait for the next prompt."""
        self.begin(text)
        self.until(rf"In \[{self._typed + 1}\]:")

    def begin(self, text: str) -> None:
        self._typed += 1
        os.write(self._file, f"\x1b[200~{text}\x1b[201~\x1b\r".encode())

    def until(self, pattern: str) -> None:
        """Wait until it has sent a text that it had not when it was typed the last."""
        self._wait(lambda: re.search(pattern, self.sent) is not None, pattern)

    def end(self) -> None:
        os.write(self._file, b"exit\r")
        self._wait(lambda: False, "the end")

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 60
        while not done():
            ready, _, _ = select([self._file], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"no {what} in {self.sent!r}"
            try:
                part = os.read(self._file, 65536)
            except OSError:  # it has gone
                part = b""
            if not part:
                assert what == "the end", f"it ended before {what}: {self.sent!r}"
                return
            self.sent += part.decode("utf-8", "replace")


@contextmanager
def ipython(folder: Path) -> Iterator[Terminal]:
    """IPython on a terminal of its own; it has ended afterwards, and well."""
    import fcntl
    import struct
    import termios

    environment = {**os.environ, **_QUIET, "IPYTHONDIR": str(folder / "ipython")}
    pid, file = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(_COMMAND[0], _COMMAND, environment)
    try:
        fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        terminal = Terminal(file)
        terminal.until(r"In \[1\]:")
        yield terminal
        terminal.end()
    finally:
        os.close(file)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def plain(sent: str) -> str:
    """What is shown above the last row: nothing between saving the place and going back to it."""
    rest = re.sub(r"\x1b7.*?\x1b8", "", sent, flags=re.DOTALL)
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", rest).replace("\r", "")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    """All that a terminal was sent for a line on threads, and for a cell and its variable."""
    folder = tmp_path_factory.mktemp("terminal")
    with ipython(folder) as terminal:
        terminal.type("%load_ext stageprof")
        terminal.type(_TASKS)
        terminal.begin("%stageprof sum(dask.compute(*made, scheduler='threads', num_workers=4))")
        terminal.until(r"0 of 4 tasks")
        (folder / "go on").touch()
        terminal.until(r"In \[4\]:")
        terminal.type("%%stageprof -q\nkept = dask.compute(*made, scheduler='threads')")
        terminal.type("print('kept', kept)")
    return terminal.sent


def test_the_live_line_has_the_last_row_and_gives_it_back(shown: str) -> None:
    reserved, line = shown.index(f"\x1b[1;{ROWS - 1}r"), shown.index("0 of 4 tasks")
    assert reserved < line < shown.rindex("\x1b[r")
    drawn = re.findall(r"\x1b7[^\x1b]*\x1b\[(\d+);1H\x1b\[2K[^\x1b]*\x1b\[48;2;", shown)
    assert set(drawn) <= {str(ROWS)}


def test_what_the_tasks_print_and_the_summary_are_whole(shown: str) -> None:
    text = plain(shown)
    for i in range(4):
        assert f"line {i}\n" in text
    assert "of 4 tasks" not in text
    summary = text[text.index("4 tasks in 1 computation") :]
    assert re.search(r"\nWhere the time went +wall  share\n(  \w+ .* %\n){8}", summary)
    assert summary.index("Where the time went") < summary.index("Out[3]: 6\n")


def test_a_cell_keeps_its_variables(shown: str) -> None:
    assert "\nkept (0, 1, 2, 3)\n" in plain(shown)
    assert "Traceback" not in shown
