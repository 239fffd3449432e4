"""Which rows of boxes each picture shows, and in which order, below each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from stageprof_ui.columns.boxes import Boxes, Row

#: Kinds of rows that are threads which run tasks: what a worker's share is of.
THREAD: Final = "thread"
#: Above this many lines processes are folded at first.
FOLDED_ABOVE: Final = 40
#: What the seconds of rows are that nobody is busy in, by their kind.
_WHAT: Final = {"path": "of the critical path", "waiting": "waited", "transfer": "in transfers"}


@dataclass(frozen=True)
class Line:
    """One line of a picture: what it is called, and the rows that it adds up."""

    label: str
    rows: tuple[int, ...]
    #: relative to that of a thread
    height: float = 1.0
    #: what its process is called, as no other is: its lines can be folded into the first of them
    parent: str = ""
    #: what the seconds of its boxes are; a rectangle sums up those of one kind
    what: str = "busy"


def lines(found: Boxes) -> list[Line]:
    """The lines of the timeline: one per row, the thin ones for what is not a thread."""
    out = []
    for i, row in enumerate(found.rows):
        if row.kind in ("path", "path here", "client", "scheduler"):
            continue
        height = 1.0 if row.kind == THREAD else 0.65  # so that each has room for its name
        what = _WHAT.get(row.kind, "busy")
        out.append(Line(row.label, (i,), height, _process_of(row), what))
    return out


def folded(found: Boxes) -> list[Line]:
    """One line per process: all its threads together."""
    by_process: dict[tuple[int, str], list[int]] = {}
    for i, row in enumerate(found.rows):
        if row.kind == THREAD:
            by_process.setdefault((row.place, _process_of(row)), []).append(i)
    return [Line(name, tuple(rows), 1.0, name) for (_, name), rows in by_process.items()]


def _process_of(row: Row) -> str:
    """What a row's process is called: its label up to the last comma, for a name may hold some."""
    name, _, what = row.label.rpartition(", ")
    return name if row.place >= 0 or what.startswith("thread ") else row.label


def waterfall(found: Boxes) -> list[Line]:
    """The lines of the overview: the path; client, scheduler and workers, each with its path."""
    return list(_waterfall(found))


def _waterfall(found: Boxes) -> Iterator[Line]:
    kinds: dict[str, list[int]] = {}
    for i, row in enumerate(found.rows):
        name = f"here {row.label}" if row.kind == "path here" else row.kind
        kinds.setdefault(name, []).append(i)
    for label, kind, role in (
        ("critical path", "path", ""),
        ("client", "client", "client"),
        ("scheduler", "scheduler", "scheduler"),
        ("workers", THREAD, "worker"),
    ):
        rows, here = kinds.get(kind, ()), kinds.get(f"here {role}", ())
        if role == "scheduler" and not np.diff(found.offsets)[[*rows, *here]].any():
            continue  # there is none
        yield Line(label, tuple(rows), what=_WHAT.get(kind, "busy"))
        if role:
            yield Line("", tuple(here), 0.25, "path", _WHAT["path"])
