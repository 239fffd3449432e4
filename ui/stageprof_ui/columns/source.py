"""Lines of the user's program, read on the machine that shows them.

A recording may come from anybody and name any file. Read are Python files alone, those that may be
what ran, and shown are the lines that it names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Final

from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_ui.columns.library import when

#: Bytes of a file, at most: nobody wrote a larger one.
LARGEST: Final = 2_000_000
#: Files that are read, at most; a recording may name any number.
FILES: Final = 200

#: A file and a line of it.
Place = tuple[str, int]


def quoted(recording: Recording, places: Iterable[Place]) -> dict[Place, str]:
    """What stands at some places, safe to show; what may not be shown is not in it."""
    started, _ = when(str(recording.store.header.get("started") or ""))
    if not started:
        return {}
    wanted: defaultdict[str, set[int]] = defaultdict(set)
    for file, number in places:
        wanted[file].add(number)
    found: dict[Place, str] = {}
    for file, numbers in islice(wanted.items(), FILES):
        # The start is known in whole seconds.
        lines = _lines(file, started + 1)
        found |= {(file, n): _text(lines[n - 1]) for n in numbers if 0 < n <= len(lines)}
    return found


def _lines(file: str, before: float) -> list[bytes]:
    """The lines of a file; none if it was changed since, is no Python file, or cannot be read."""
    if not (file.startswith("/") and file.endswith(".py")):
        return []
    try:
        path = Path(file).resolve(strict=True)  # a link may lead to anything
        status = path.stat()
        usable = S_ISREG(status.st_mode) and status.st_size <= LARGEST
        if path.suffix != ".py" or not usable or status.st_mtime >= before:
            return []
        with path.open("rb") as opened:
            return opened.read(LARGEST).splitlines()
    except (OSError, ValueError, RuntimeError):  # not there, no path, a circle of links
        return []


def _text(line: bytes) -> str:
    return safe(line.decode("utf-8-sig", "replace").strip(), limit=200)
