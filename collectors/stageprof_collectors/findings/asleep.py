"""Where the program sleeps beside Dask: its own line waits, and calls nothing that Python sees."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from stageprof_collectors.profiles.flame import WAITING_SHARE, flame
from stageprof_collectors.profiles.lines import LEAST
from stageprof_collectors.profiles.nodes import Frame
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


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
    waiting: defaultdict[Frame, float] = defaultdict(float)
    for frame, took in zip(seen.nodes.frames, seen.own[WAITING_SHARE].tolist(), strict=True):
        if took and frame.is_users:
            waiting[frame] += took
    if not waiting:
        return None
    frame, took = max(waiting.items(), key=lambda item: item[1])
    return Asleep(frame.file, frame.line, took / seen.seconds)
