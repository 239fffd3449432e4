"""How far long work is, on a terminal: a line that is gone when it is done."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Final, Self, TextIO

from stageprof.tty import cut, is_terminal

#: Of a terminal that does not say.
_COLUMNS: Final = 80
_CLEAR: Final = "\r\x1b[2K"
_RULES: Final = "what to change: {done} of {of} rules asked, {what}"


class Progress:
    """Says what is done next; on anything but a terminal, nothing.

    Args:
        file: where the line goes.
        said: what it says, with the fields `done`, `of` and `what`.
    """

    def __init__(self, file: TextIO, said: str = _RULES) -> None:
        self._file = file
        self._said = said
        self._shown = False

    def __call__(self, done: int, of: int, what: str) -> None:
        """Show that `what` is done, the next after `done` of `of`."""
        if is_terminal(self._file):
            self._shown = True
            line = f"stageprof  {self._said.format(done=done, of=of, what=what)}"
            self._write(f"{_CLEAR}{cut(line, self._columns() - 1)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            self._write(_CLEAR)

    def _columns(self) -> int:
        """Those of the terminal: of a line that it wraps only the last row would be cleared."""
        try:
            return os.get_terminal_size(self._file.fileno()).columns or _COLUMNS
        except (OSError, ValueError):
            return _COLUMNS

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except (OSError, ValueError):  # the terminal is gone; the diagnosis is not for it alone
            return
