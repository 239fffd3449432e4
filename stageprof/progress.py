"""How far long work is, on a terminal: a line that is gone when it is done."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self, TextIO

from stageprof.tty import is_terminal

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
            self._write(f"{_CLEAR}stageprof  {self._said.format(done=done, of=of, what=what)}")

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

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
            self._file.flush()
        except (OSError, ValueError):  # the terminal is gone; the diagnosis is not for it alone
            return
