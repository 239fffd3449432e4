"""What the user scattered: each object, each time, and the call that it went in."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stageprof_collectors.account.block import SCATTER
from stageprof_collectors.findings.fetched import fetched
from stageprof_collectors.replay.relief import Interval

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


class Scattered(NamedTuple):
    """One object in one call; of one object `who` is the same each time."""

    #: the client's place, and the object's number there
    who: tuple[int, int]
    type: str
    variable: str
    file: str
    line: int
    used_file: str
    used_line: int
    nbytes: int
    #: when the call waited
    call: Interval
    #: of which key it is the result that the client had fetched; "" of none
    key: str = ""


def scattered(recording: Recording) -> list[Scattered]:
    """All that the region's client scattered, in order; costs nothing where there is none."""
    if not recording.store.rows("scatter"):
        return []
    table, strings = recording.timeline.read("scatter", "t"), recording.store.strings
    calls, keys = _calls(recording), fetched(recording, scattered=True)
    starts = [start for start, _ in calls]
    found = []
    for row in np.argsort(table["t"], kind="stable"):
        values = {name: int(column[row]) for name, column in table.items()}
        at = bisect_left(starts, values["t"])
        if at < len(calls):
            who = values["place"], values["number"]
            found.append(
                Scattered(
                    who,
                    strings[values["type"]],
                    strings[values["variable"]],
                    strings[values["file"]],
                    values["line"],
                    strings[values["by_file"]],
                    values["by_line"],
                    values["nbytes"],
                    calls[at],
                    keys.get(who, ""),
                )
            )
    return found


def _calls(recording: Recording) -> list[Interval]:
    """When the region's client scattered."""
    mine = recording.timeline.region.place
    lanes = (lane for (place, _), lane in recording.walk.blocks.items() if place == mine)
    return sorted((b.start, b.stop) for lane in lanes for b in lane if b.call == SCATTER)
