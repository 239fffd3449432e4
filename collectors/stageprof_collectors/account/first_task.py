"""The time to the first task: how long a computation was under way before anything ran.

A computation that is handed over while others run waits for a thread behind their tasks: that is
no part of its way to the first task, nor what a loop of submits makes its user wait for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from stageprof_collectors.findings.phrase import at
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Shorter than this is not worth naming beside longer ones, as a share of the time split.
WORTH: Final = 0.01


@dataclass(frozen=True)
class FirstTask:
    """The longest time before a computation's first task in which no task ran, and its stages.

    `of`: how many computations there are.
    """

    seconds: float
    line: str
    of: int
    split: tuple[tuple[Stage, float], ...]


def first_task(recording: Recording) -> FirstTask | None:
    """The longest of a recording; None if no task ran for any computation."""
    frame = recording.handed_over
    frame = frame.assign(alone_s=alone_s(recording, frame))
    known: list[dict[Any, Any]] = frame[frame["alone_s"].notna()].to_dict("records")
    if not known:
        return None
    row = max(known, key=lambda row: float(row["alone_s"]))
    wait = float(row["alone_s"])
    begun = float(row["start_s"] + row["first_task_s"])
    stop = recording.timeline.region.start + round(begun * 1e9)
    split = recording.walls.between(stop - round(wait * 1e9), stop)
    parts = [(stage, split[f"{stage}_s"]) for stage in Stage]
    worth = [(s, t) for s, t in parts if t >= wait * WORTH]
    worth.sort(key=lambda part: -part[1])
    return FirstTask(wait, at(row["file"], row["line"]), len(frame), tuple(worth))


def alone_s(recording: Recording, computations: pd.DataFrame) -> Any:
    """Of each computation the seconds right before its first task in which no task ran.

    Not before its call began; not-a-number where it had no task.
    """
    runs, origin = recording.timeline.runs, recording.timeline.region.start
    order = np.argsort(runs["start"], kind="stable")
    starts = (runs["start"][order] - origin) / 1e9
    busy = np.maximum.accumulate((runs["stop"][order] - origin) / 1e9)
    begin = computations["start_s"].to_numpy(np.float64)
    first = begin + computations["first_task_s"].to_numpy(np.float64)
    # Instants are whole nanoseconds: less than half of one before is none that is its own.
    before = np.searchsorted(starts, first - 0.5e-9) - 1
    until = np.where(before >= 0, busy[before], begin) if len(busy) else begin
    return np.maximum(first - np.maximum(begin, until), 0.0)
