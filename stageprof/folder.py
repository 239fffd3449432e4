"""The folder in which the process began: what comes next is typed there, wherever it went."""

from __future__ import annotations

import os
from typing import Final


def _here() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 (as it is called, not where it is)
    except OSError:  # it is gone
        return ""


BEGAN: Final = _here()
