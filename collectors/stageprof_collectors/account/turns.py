"""When coroutines of tasks had their worker's event loop, which could do nothing else meanwhile."""

from __future__ import annotations

from collections import defaultdict
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import lookup
from stageprof_collectors.account.intervals import innermost
from stageprof_collectors.account.lane import Lane, What
from stageprof_collectors.account.timeline import Ints, Timeline
from stageprof_runtime.stage import STEP

_COMPUTE: Final = STEP["compute"]
#: The label of a turn of the run at row 0; that of the next row is lower by 1. No text has it.
_FIRST: Final = -2


class Turns(NamedTuple):
    """Of each turn the row of its run, its place, from when to when, and its processor time; ns."""

    rows: Ints
    place: Ints
    start: Ints
    stop: Ints
    cpu: Ints

    def some(self, mine: NDArray[np.bool_]) -> Turns:
        """Those of a mask."""
        return Turns(*(column[mine] for column in self))

    def lanes(self) -> dict[int, Lane]:
        """The same by place, each with its run for a label; see `whose`."""
        found: defaultdict[int, Lane] = defaultdict(list)
        columns = (column.tolist() for column in (self.start, self.stop, self.place, self.rows))
        for start, stop, place, row in zip(*columns, strict=True):
            found[place].append((start, stop, What(_COMPUTE, place, _FIRST - row)))
        return {place: innermost(lane) for place, lane in found.items()}


def turns(timeline: Timeline) -> Turns:
    """The long turns of the runs of a timeline."""
    table, runs = timeline.read("turn", "start", "stop"), timeline.runs
    rows, known = lookup(runs["run"], runs["wplace"], table["run"], table["place"])
    every = Turns(rows, table["place"], table["start"], table["stop"], table["cpu"])
    return every.some(known)


def whose(what: What, run: int) -> tuple[What, int]:
    """What was done in a window of a run, and which run it is of: another's, if it had a turn."""
    if what.label > _FIRST:
        return what, run
    return what._replace(label=0), _FIRST - what.label
