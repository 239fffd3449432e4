"""What the list of recordings says of each: read from its file, in two steps for it may take long.

Nothing here trusts a file: what cannot be read is said, and is no error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from stageprof_collectors.account.attempts import ran
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.quantity import seconds, size
from stageprof_collectors.findings.settings import Settings
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.file import read_frames
from stageprof_collectors.summary import Summary, summarize
from stageprof_runtime.errors import DamagedRecording, StageprofError
from stageprof_ui.words import text

SUFFIX: Final = ".stageprof"
#: Recordings of a folder that are listed: the newest.
MOST: Final = 500


@dataclass(frozen=True)
class Entry:
    """A file of the folder, as it is now; another size or time is another entry."""

    name: str
    size: int
    #: when it was last written, ns since 1970
    changed: int


@dataclass(frozen=True)
class Head:
    """What the first frame of a file says."""

    label: str
    #: when the run was, seconds since 1970, and as its own machine's clock showed it
    started: float
    date: str


@dataclass(frozen=True)
class Content:
    """What the whole file says; `trouble` is what failed or is missing, "" if nothing.

    `verdict` is said where there is no `worst`: that nothing is to be changed, or nothing was seen.
    """

    wall_s: float | None = None
    tasks: int | None = None
    worst: Finding | None = None
    trouble: str = ""
    verdict: str = ""


@dataclass(frozen=True)
class Line:
    """One recording of the list; what was not read yet is None."""

    entry: Entry
    head: Head | None = None
    content: Content | None = None

    @property
    def when(self) -> float:
        """What the list is ordered by: the run's start, until that is known the file's time."""
        known = self.head.started if self.head else 0.0
        return known or self.entry.changed / 1e9


def listing(folder: Path) -> list[Entry]:
    """The recordings in a folder: regular files only, so that no link leads out of it."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append(Entry(entry.name, status.st_size, status.st_mtime_ns))
            except OSError:  # it is gone again
                continue
    return sorted(found, key=lambda entry: -entry.changed)


def head(path: Path) -> Head:
    """The first frame of a file; of one that has none, nothing."""
    try:
        with read_frames(path) as frames:
            said = frame.decode_json(next(frames).raw)
    except Exception:  # a file may come from anybody; what is wrong with it `content` says
        return Head("", 0.0, "")
    started = str(said.get("started") or "")
    return Head(str(said.get("label") or ""), *when(started))


def when(started: str) -> tuple[float, str]:
    """When a recording began, as its header says: seconds since 1970, and as text; or nothing."""
    try:
        moment = datetime.fromisoformat(started)
        return moment.timestamp(), f"{moment:%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return 0.0, ""


def _refused(error: Exception) -> str:
    """Why a file cannot be used: not all that cannot be is damaged."""
    if isinstance(error, DamagedRecording):
        return f"damaged: {error}"
    if isinstance(error, (StageprofError, OSError)):
        return str(error) or type(error).__name__
    return f"damaged: it cannot be made sense of ({type(error).__name__}: {error})"


def content(path: Path, settings: Settings, max_memory: int | None = None) -> Content:
    """The facts of a file; takes as long as to open it and to ask every rule."""
    try:
        recording = Recording.open(path, max_memory=max_memory)
        if not recording.store.places:
            return Content(trouble=f"holds no event ({recording.store.incomplete_reason})")
        return _content(recording, summarize(recording, settings))
    except Exception as error:  # the same
        return Content(trouble=_refused(error))


def _content(recording: Recording, summary: Summary) -> Content:
    worst = next(iter(summary.changes), None)
    tasks = int(ran(recording.timeline.runs).sum())
    trouble = "; ".join(filter(None, (*summary.failures, summary.incomplete)))
    return Content(summary.wall_s, tasks, worst, trouble, summary.verdict)


# -- as texts ---------------------------------------------------------------------------------


def _less(value: float | None) -> tuple[bool, float]:
    """The greatest first, what is not known last."""
    return value is None, -(value or 0.0)


def _of(line: Line) -> Content:
    return line.content or Content()


def _cost(line: Line) -> float | None:
    worst = _of(line).worst
    return worst.cost_s if worst else None


#: How the list may be ordered; what is the same in that is newest first.
ORDERS: Final[dict[str, Callable[[Line], Any]]] = {
    "newest first": lambda line: -line.when,
    "oldest first": lambda line: line.when,
    "by name": lambda line: line.entry.name.casefold(),
    "longest wall time first": lambda line: _less(_of(line).wall_s),
    "most tasks first": lambda line: _less(_of(line).tasks),
    "largest file first": lambda line: _less(line.entry.size),
    "costliest finding first": lambda line: _less(_cost(line)),
}
NEWEST: Final = next(iter(ORDERS))


def facts(
    folder: Path, lines: Sequence[Line], most: int = MOST, *, find: str = "", order: str = NEWEST
) -> dict[str, Any]:
    """Facts for `templates/library.html`.

    Args:
        folder: where they are.
        lines: all that are there.
        most: that are listed.
        find: words that each listed one says, in its name, label, date or what was found.
        order: one of `ORDERS`.
    """
    wanted = find.casefold().split()
    found = [line for line in lines if all(word in _said(line) for word in wanted)]
    newest = sorted(found, key=ORDERS[NEWEST])
    shown = sorted(newest, key=ORDERS.get(order, ORDERS[NEWEST]))[:most]
    return {
        "folder": text(folder),
        "rows": [_row(line) for line in shown],
        "all": len(lines),
        "wanted": bool(wanted),
        "order": order,
        "unread": sum(line.content is None for line in lines),
        "left_out": len(found) - len(shown),
    }


def _said(line: Line) -> str:
    """What is searched of a recording; nothing of it is shown."""
    label, date = (line.head.label, line.head.date) if line.head else ("", "")
    worst, found = _of(line).worst, _of(line)
    finding = (str(worst.severity), worst.rule, worst.headline) if worst else (found.verdict,)
    return " ".join((line.entry.name, label, date, *finding, found.trouble)).casefold()


def _row(line: Line) -> dict[str, Any]:
    head_, found = line.head, line.content
    label = head_.label if head_ else ""
    return {
        "link": "/?recording=" + quote(os.fsencode(line.entry.name), safe=""),
        "name": text(line.entry.name),
        "label": text(label) if label and label != line.entry.name else "",
        "date": head_.date if head_ else "",
        "size": size(line.entry.size),
        "read": found is not None,
        **_found(found or Content()),
    }


def _found(found: Content) -> dict[str, Any]:
    worst = found.worst
    return {
        "wall": seconds(found.wall_s) if found.wall_s is not None else "",
        "tasks": f"{found.tasks:,}" if found.tasks is not None else "",
        "severity": str(worst.severity) if worst else "",
        "finding": text(worst.headline) if worst else "",
        "verdict": text(found.verdict),
        "trouble": text(found.trouble) if found.trouble else "",
        # whether its pages can be opened
        "usable": found.wall_s is not None or not found.trouble,
    }
