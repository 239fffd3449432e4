"""Whether a stream shows lines that come and go."""

from __future__ import annotations

import os
from typing import TextIO

from rich.cells import cell_len, set_cell_size


def is_tty(file: TextIO | None) -> bool:
    """Whether it is a terminal, and no file or pipe; a stream may be closed, or be none."""
    try:
        return file is not None and file.isatty()
    except ValueError:  # closed
        return False


def is_terminal(file: TextIO | None) -> bool:
    """Whether it is a terminal that can do more than print."""
    return is_tty(file) and os.environ.get("TERM", "dumb") not in ("", "dumb")


def cut(line: str, cells: int) -> str:
    """The line, or so many cells of it, that a terminal does not wrap it."""
    return set_cell_size(line, max(0, min(cell_len(line), cells)))
