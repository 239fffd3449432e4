"""When coroutines of tasks had their worker's event loop, which could do nothing else meanwhile."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from stageprof_collectors.account.attempts import lookup
from stageprof_collectors.account.intervals import innermost
from stageprof_collectors.account.lane import Lane, What
from stageprof_collectors.account.timeline import Timeline
from stageprof_runtime.stage import STEP

_COMPUTE: Final = STEP["compute"]
#: The label of a turn of the run at row 0; that of the next row is lower by 1. No text has it.
_FIRST: Final = -2


def turns(timeline: Timeline) -> dict[int, Lane]:
    """The long turns by place, each with its run for a label; see `whose`."""
    table, runs = timeline.read("turn", "start", "stop"), timeline.runs
    rows, known = lookup(runs["run"], runs["wplace"], table["run"], table["place"])
    found: defaultdict[int, Lane] = defaultdict(list)
    columns = table["start"][known], table["stop"][known], table["place"][known], rows[known]
    for start, stop, place, row in zip(*(column.tolist() for column in columns), strict=True):
        found[place].append((start, stop, What(_COMPUTE, place, _FIRST - row)))
    return {place: innermost(lane) for place, lane in found.items()}


def whose(what: What, run: int) -> tuple[What, int]:
    """What was done in a window of a run, and which run it is of: another's, if it had a turn."""
    if what.label > _FIRST:
        return what, run
    return what._replace(label=0), _FIRST - what.label
