"""Tasks of operations on data frames that Dask could have fused: rows of UNFUSED that ran."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stageprof_collectors.account.attempts import ran
from stageprof_collectors.account.timeline import Ints

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


class Unfused(NamedTuple):
    """The tasks of all such groups of operations."""

    #: of `Timeline.runs`
    rows: Ints
    #: how many of them would be left
    left: int
    #: operations of the largest group
    longest: int


def unfused(recording: Recording) -> Unfused:
    """Those that ran; none where nothing was left unfused."""
    layered = recording.layered
    runs = np.where(ran(recording.timeline.runs), layered.of, -1)
    tasks = np.bincount(runs[runs >= 0], minlength=len(layered.names))
    theirs, left, longest = np.zeros(len(tasks), np.bool_), 0, 0
    for group in _groups(recording).values():
        mine = [layer for layer in group if tasks[layer] and not theirs[layer]]
        # With another number of partitions one would not be fused.
        usual = max((int(tasks[layer]) for layer in mine), default=0)
        mine = [layer for layer in mine if tasks[layer] == usual]
        if len(mine) > 1:
            theirs[mine] = True
            left, longest = left + usual, max(longest, len(mine))
    rows = np.flatnonzero((runs >= 0) & theirs[runs]) if len(tasks) else np.zeros(0, np.int64)
    return Unfused(rows, left, longest)


def _groups(recording: Recording) -> dict[int, dict[int, None]]:
    """The layers of each group that have tasks, once each, by the last operation's name."""
    table, strings = recording.store.table("unfused"), recording.store.strings
    numbers = {name: i for i, name in enumerate(recording.layered.names)}
    groups: defaultdict[int, dict[int, None]] = defaultdict(dict)
    for name, last in zip(table["name"].tolist(), table["by_name"].tolist(), strict=True):
        layer = numbers.get(strings[name])
        if layer is not None:
            groups[last][layer] = None
    return groups
