"""The change after which some runs would not happen: no time of theirs is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.replay.change import Factor
from stageprof_collectors.replay.replay import Change

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def without(recording: Recording, rows: Ints, part: Factor = 1.0) -> Change:
    """The run without these runs (rows of `Timeline.runs`); what needed them has what it needed.

    Or without this part of each.
    """
    left = np.ones(len(recording.timeline.runs["run"]))
    left[rows] = 1.0 - part
    return Change(compute=left, lead=left, fetch=left, lag=left, begin=left)


def worked_s(recording: Recording, rows: Ints) -> float:
    """Seconds of the functions of these runs, over all threads."""
    runs = recording.timeline.runs
    return float((runs["stop"] - runs["start"])[rows].sum()) / 1e9
