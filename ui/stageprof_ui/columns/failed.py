"""Which boxes are runs that raised, and what: they are marked, however many boxes there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from stageprof_collectors.findings.phrase import made_at
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.stage import STEP
from stageprof_ui.columns.boxes import Boxes

#: Boxes that are marked: the first ones; of more only the number is told.
MOST: Final = 5_000
#: What is said of a run whose task was run once more.
AGAIN: Final = "; it was run again"
_COMPUTE: Final = STEP["compute"]


@dataclass(frozen=True)
class Failed:
    """Boxes of runs that raised, in the order of rows and of time; goes to the browser as JSON.

    Attributes:
        row: the row of boxes that each is in.
        start: in units, as in `Boxes`; so is `length`.
        layer: its layer's number.
        run: its row in the table of tasks.
        said: what it raised, an index of `words`.
        words: safe to show: an exception's type, or that it is not known.
        more: boxes that are not here.
    """

    row: Sequence[int] = ()
    start: Sequence[int] = ()
    length: Sequence[int] = ()
    layer: Sequence[int] = ()
    run: Sequence[int] = ()
    said: Sequence[int] = ()
    words: Sequence[str] = ()
    more: int = 0


def failed(recording: Recording, boxes: Boxes, *, most: int = MOST) -> Failed:
    """The boxes of what raised in a recording, at most so many."""
    rows = recording.failures.rows
    if not len(rows):
        return Failed()
    at = np.flatnonzero(np.isin(boxes.run, rows) & (boxes.step == _COMPUTE))
    more, at = max(len(at) - most, 0), at[:most]
    runs = boxes.run[at].tolist()
    again = set(recording.failures.retried)
    said = [_said(recording, run) + (AGAIN if run in again else "") for run in runs]
    words = list(dict.fromkeys(said))
    number = {word: i for i, word in enumerate(words)}
    return Failed(
        (np.searchsorted(boxes.offsets, at, side="right") - 1).tolist(),
        boxes.start[at].tolist(),
        boxes.length[at].tolist(),
        boxes.layer[at].tolist(),
        runs,
        [number[word] for word in said],
        words,
        more,
    )


def sentence(recording: Recording, found: Failed) -> str:
    """What stripes mean, where there are any."""
    if not found.row:
        return ""
    runs = count(len(recording.failures.rows), "run")
    more = f"; {found.more:,} more boxes of such are not marked" if found.more else ""
    return f"Striped: what raised an exception ({runs}){more}."


def _said(recording: Recording, run: int) -> str:
    raised = recording.failures.raised.get(run)
    if raised is None or not raised.type:
        return "an exception"
    return safe(raised.type + made_at(raised.file, raised.line), limit=200)
