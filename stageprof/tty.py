"""Whether a stream shows lines that come and go."""

from __future__ import annotations

import os
from typing import TextIO


def is_terminal(file: TextIO | None) -> bool:
    """Whether it is a terminal that can do more than print; a stream may be closed, or be none."""
    try:
        shown = file is not None and file.isatty()
    except ValueError:  # closed
        return False
    return shown and os.environ.get("TERM", "dumb") not in ("", "dumb")
