"""Names of parameters that are the same in every process, as a run in parallel needs them."""

from __future__ import annotations

import re


def plainly(value: object) -> str:
    """What `repr` says, without where in memory it is."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
