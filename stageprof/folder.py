"""The folder in which the process began: what comes next is typed there, wherever it went."""

from __future__ import annotations

import os
from typing import Final


def here() -> str:
    """The folder that the process is in; "" if it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109 (as a text)
    except OSError:
        return ""


BEGAN: Final = here()
