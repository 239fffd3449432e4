"""What a command says of the file that it wrote."""

from __future__ import annotations

from pathlib import Path

from stageprof.alphabet import echo
from stageprof_collectors.text import safe


def wrote(target: Path | str, *, err: bool = False) -> None:
    """Say where it is; its name may have been made from that of a stranger's recording."""
    echo(f"Wrote {safe(target, limit=500)}", err=err)
