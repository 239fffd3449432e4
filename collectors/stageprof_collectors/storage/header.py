"""What a recording that is made here says of itself in its first frame."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from stageprof_runtime.system import surroundings

#: Characters of what the user calls it; faces show fewer, and a header has a bound.
_LABEL: Final = 10_000


def describe(label: str, *, whole: bool = False) -> dict[str, Any]:
    """The header of a recording made here: versions and machine, nothing that may be secret.

    Args:
        label: what the recording is called.
        whole: whether it is of a whole program, from its first line on.
    """
    return {
        "label": label[:_LABEL],
        **surroundings(),
        "started": datetime.now().astimezone().isoformat(timespec="microseconds"),
        "program": Path(sys.argv[0]).name if sys.argv else "",
        "whole": whole,
    }
