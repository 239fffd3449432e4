"""The lines of the user's own code at which the region's thread was seen while no step ran."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.profiles.flame import flame
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Looks at a line from which on it is told.
LEAST: Final = 10


class OwnLine(NamedTuple):
    """A line of the user's, and for how many seconds it, or what it called, was seen running."""

    file: str
    line: int
    seconds: float


def own_lines(recording: Recording) -> list[OwnLine]:
    """Those outside all stages, the longest first; nothing of what waits there is seen."""
    found = flame(recording, stage=Stage.OUTSIDE)
    frames, seconds = found.nodes.frames, found.own.sum(axis=0)
    mine = _innermost([frame.is_users for frame in frames], found.nodes.parent.tolist())
    total: defaultdict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0, 0])
    for node in np.flatnonzero(found.looks).tolist():
        if mine[node] >= 0:
            sums = total[frames[mine[node]].file, frames[mine[node]].line]
            sums[0] += float(seconds[node])
            sums[1] += int(found.looks[node])
    lines = [OwnLine(*at, s) for at, (s, looks) in total.items() if looks >= LEAST]
    return sorted(lines, key=lambda line: (-line.seconds, line))


def _innermost(wanted: list[bool], parent: list[int]) -> list[int]:
    """Of each node itself, if it is wanted, or the next around it that is; -1: none is."""
    found: list[int] = []
    for node, around in enumerate(parent):
        found.append(node if wanted[node] else found[around] if around >= 0 else -1)
    return found
