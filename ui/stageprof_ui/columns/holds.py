"""When threads that run tasks held the GIL or waited for it, packed for the time line.

With them a pixel shows the share of its time that was waiting, exact at any zoom; without them, the
share of each task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.innocence import without_gil
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.profiles.holders import spans, watched
from stageprof_collectors.recording import Recording
from stageprof_ui.columns.boxes import Boxes
from stageprof_ui.columns.lines import THREAD
from stageprof_ui.columns.packing import steps

#: Up to so many go to the browser: 1 MB of a report at most.
MOST: Final = 150_000
#: What a thread did in an interval, beside 0 (held) and 1 (waited): nobody looked.
UNSEEN: Final = 2


@dataclass(frozen=True)
class Holds:
    """Intervals in order, those of each row of `Boxes` behind each other.

    Attributes:
        start, length: uint32, in units since the region's start; one entry per interval.
        what: uint8, 0 if the thread held the GIL in it, 1 if it waited, 2 if nobody looked.
        offsets: uint32, first interval of each row, and the end (rows + 1 entries).
        known: uint8 per row: whether its thread was watched.
        said: what the colours are made of, in words.
    """

    start: NDArray[np.uint32]
    length: NDArray[np.uint32]
    what: NDArray[np.uint8]
    offsets: NDArray[np.uint32]
    known: NDArray[np.uint8]
    said: str = ""

    def columns(self) -> dict[str, Any]:
        """What `browser/boxes.js` reads beside the boxes."""
        names = ("length", "what", "offsets", "known")
        own = {f"hold_{name}": [getattr(self, name)] for name in names}
        return {"hold_start": [steps(self.start)], **own}


#: Of a row: starts and stops in units, and what it was.
_Packed = tuple[Ints, Ints, Ints]
_NONE: Final[_Packed] = (np.zeros(0, np.int64),) * 3


def holds(recording: Recording, boxes: Boxes, most: int = MOST) -> Holds:
    """Those of all threads that ran tasks and were watched; none if they are too many."""
    when = watched(recording)
    found = [_of_row(recording, boxes, i, when) for i in range(len(boxes.rows))]
    total = sum(len(one[0]) for one in found if one)
    if total > most:
        found = [None] * len(found)
    packed = [one or _NONE for one in found]
    start, stop, what = (np.concatenate([one[i] for one in [*packed, _NONE]]) for i in range(3))
    offsets = np.cumsum([0, *(len(one[0]) for one in packed)])
    return Holds(
        start.astype(np.uint32),
        (stop - start).astype(np.uint32),
        what.astype(np.uint8),
        offsets.astype(np.uint32),
        np.array([one is not None for one in found], np.uint8),
        _said(recording, total, most),
    )


def _of_row(
    recording: Recording, boxes: Boxes, number: int, when: dict[int, tuple[int, int]]
) -> _Packed | None:
    """None if the row is no thread, or nobody watched its process."""
    row, gil = boxes.rows[number], recording.timeline.gil
    process = int(gil.process[row.place]) if row.place >= 0 else -1
    a, b = int(boxes.offsets[number]), int(boxes.offsets[number + 1])
    if row.kind != THREAD or process not in when or a == b:
        return None
    had = gil.threads.get((process, row.thread))
    start, stop, what = spans(had) if had else _NONE
    origin, unit = recording.timeline.region.start, boxes.unit_ns
    first, last = ((t - origin) // unit for t in when[process])
    begin = int(boxes.start[a])
    end = int((boxes.start[a:b].astype(np.int64) + boxes.length[a:b]).max())
    start = np.concatenate([[begin], (start - origin) // unit, [last]]).clip(begin, end)
    stop = np.concatenate([[first], (stop - origin) // unit, [end]]).clip(begin, end)
    what = np.concatenate([[UNSEEN], what, [UNSEEN]])
    some = stop > start
    return start[some], stop[some], what[some]


def _said(recording: Recording, total: int, most: int) -> str:
    gil = recording.timeline.gil
    if gil.shares is None or without_gil(recording):
        return "There was no GIL to watch, or nobody watched it."
    if total > most:
        return (
            f"Each task has one colour, by the share of its time that it waited: "
            f"{count(total, 'interval')} are too many to be sent."
        )
    if not gil:
        return "Each task has one colour, by the share of its time that it waited, estimated."
    seen = gil.watched(recording.timeline.runs["wplace"])
    some = "" if seen.all() else " Where nobody watched, each task has one colour."
    return f"A pixel shows for how much of its time its tasks were seen to wait for the GIL.{some}"
