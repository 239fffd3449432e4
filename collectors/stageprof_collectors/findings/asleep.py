"""Where the program sleeps beside Dask: its own line waits, and calls nothing that Python sees."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.profiles.flame import WAITING_SHARE, flame
from stageprof_collectors.profiles.nodes import Frame
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Looks from which on they say something.
LEAST: Final = 10


class Asleep(NamedTuple):
    """A line of the user's, and the part of the looks outside of Dask that found it waiting."""

    file: str
    line: int
    part: float


def asleep(recording: Recording) -> Asleep | None:
    """The line that slept most, as in `time.sleep`; None if there is none.

    What waits for a service is seen in a library's function.
    """
    seen = flame(recording, Stage.OUTSIDE)
    if int(seen.looks.sum()) < LEAST or not seen.seconds:
        return None
    waiting: Counter[Frame] = Counter()
    for node in np.flatnonzero(seen.own[WAITING_SHARE]).tolist():
        waiting[seen.nodes.stack(node)[-1]] += seen.own[WAITING_SHARE][node]
    mine = [(frame, took) for frame, took in waiting.most_common() if frame.is_users]
    if not mine:
        return None
    frame, took = mine[0]
    return Asleep(frame.file, frame.line, float(took) / seen.seconds)
