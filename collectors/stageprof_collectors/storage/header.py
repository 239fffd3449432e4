"""What a recording that is made here says of itself in its first frame."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from stageprof_runtime.system import surroundings


def describe(label: str) -> dict[str, Any]:
    """The header of a recording made here: versions and machine, nothing that may be secret."""
    return {
        "label": label,
        **surroundings(),
        "started": datetime.now().astimezone().isoformat(timespec="microseconds"),
        "program": Path(sys.argv[0]).name if sys.argv else "",
    }
