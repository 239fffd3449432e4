"""The last row of the terminal while a program runs: stage, tasks done, elapsed time.

Where no task ends for long it says so: a program may wait for ever.

The program may print what and how it likes, and so may its child processes: the terminal is told
to scroll all rows but the last, so nothing of theirs passes through us or over our line.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TextIO, cast

from stageprof.tty import cut, is_terminal
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.storage.collector import Live
from stageprof_ui.palette import STAGE_COLOURS

#: Seconds between two looks.
PERIOD_S: Final = 0.2
#: Seconds without the end of a task, while some are known, from which on that is worth a word.
QUIET_S: Final = 30.0
#: Fewer rows than this are the program's.
_LEAST_ROWS: Final = 5

_SAVE, _RESTORE, _CLEAR = "\x1b7", "\x1b8", "\x1b[2K"
#: Index (IND): one row down in the same column, scrolling at the bottom; and back up (CUU).
_DOWN, _UP = "\x1bD", "\x1b[1A"


class StatusLine:
    """Shows how far a recording is, from `with` to its end; on anything but a terminal, nothing.

    Args:
        look: gives the live view, as often as it is asked.
        file: where the line goes; the terminal must be behind it.
    """

    def __init__(self, look: Callable[[], Live], file: TextIO | None = None) -> None:
        self._look = look
        self._file = file or cast(TextIO, sys.stderr)  # a process may have none
        self._start = self._ended = time.monotonic()
        self._done = 0
        self._stop = threading.Event()
        self._size = os.terminal_size((0, 0))
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name="stageprof-live", daemon=True)

    def __enter__(self) -> Self:
        if is_terminal(self._file):
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if os.getpid() == self._pid and self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.wait(PERIOD_S):
                self._draw()
        except (OSError, ValueError):  # the terminal is gone, or the program closed its stderr
            return
        finally:
            self._clear()

    def _draw(self) -> None:
        size = os.get_terminal_size(self._file.fileno())
        if size.lines < _LEAST_ROWS:
            return
        setup = "" if size == self._size else _reserve(size)
        self._size = size
        live, now = self._look(), time.monotonic()
        line = rendered(live, now - self._start, size.columns, self._quiet(live, now))
        self._write(f"{setup}{_SAVE}\x1b[{size.lines};1H{_CLEAR}{line}{_RESTORE}")

    def _quiet(self, live: Live, now: float) -> float:
        """Seconds since a task was seen to have ended, or since there was none to wait for."""
        known, _, done = live.tasks
        if done != self._done or done >= known:
            self._done, self._ended = done, now
        return now - self._ended

    def _clear(self) -> None:
        """Give the last row back."""
        if self._size.lines:
            clear = f"{_SAVE}\x1b[r\x1b[{self._size.lines};1H{_CLEAR}{_RESTORE}"
            try:
                self._write(clear)
            except (OSError, ValueError):
                return

    def _write(self, text: str) -> None:
        """In one system call, so that nobody's output comes between."""
        self._file.flush()
        os.write(self._file.fileno(), text.encode(self._file.encoding or "ascii", "replace"))


def _reserve(size: os.terminal_size) -> str:
    """Scroll all rows but the last.

    A step down makes room if the cursor is in that one; unlike a newline it leaves the column, as
    the program may be amid a line.
    """
    return f"{_DOWN}{_UP}{_SAVE}\x1b[1;{size.lines - 1}r{_RESTORE}"


def rendered(live: Live, elapsed: float, columns: int, quiet: float = 0.0) -> str:
    """The line itself, no wider than the terminal, after its stage's colour unless NO_COLOR is set.

    The text has the terminal's own colour: a stage's is too pale to be read on white.

    Args:
        live: what is known of the run.
        elapsed: seconds since it began.
        columns: of the terminal.
        quiet: seconds since a task has ended.
    """
    stage = live.stage
    known, _, done = live.tasks
    tasks = f"   {done:,} of {known:,} tasks" if known else ""
    if quiet >= QUIET_S:
        tasks += f", none ended for {seconds(quiet)}; Ctrl-C ends it, with what is known"
    plain = f"stageprof  {stage:<14}{seconds(elapsed):>10}{tasks}"
    if os.environ.get("NO_COLOR"):
        return cut(plain, columns - 1)
    red, green, blue = (int(STAGE_COLOURS[stage][i : i + 2], 16) for i in (1, 3, 5))
    return f"\x1b[48;2;{red};{green};{blue}m \x1b[0m {cut(plain, columns - 3)}"
