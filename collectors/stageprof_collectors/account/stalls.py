"""When a scheduler's event loop was kept from all else by what has no step of its own.

That is a plugin's hook, a function that a client had run there, or whatever held the process. A
message and a task that wait for the loop meanwhile wait for the scheduler, not for the network.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np

from stageprof_collectors.account.intervals import innermost
from stageprof_collectors.account.lane import Lane, What
from stageprof_collectors.account.timeline import Timeline
from stageprof_runtime.stage import STEP

#: Shorter ones, s, come and go on any machine that has much to do, and last as long as messages.
LONG_S: Final = 0.1
_NAME: Final = "loop.stall_s"


def stalls(timeline: Timeline) -> dict[int, Lane]:
    """The long stalls of schedulers by place, as the step `place`."""
    texts, places = timeline.store.strings, timeline.store.places
    named = [i for i, text in enumerate(texts) if text == _NAME]
    table = timeline.read("sample", "t")
    schedulers = [i for i, place in enumerate(places) if place.role == "scheduler"]
    begin = timeline.region.start
    long = (table["value"] >= LONG_S) & (table["t"] > begin)
    mine = np.isin(table["name"], named) & np.isin(table["place"], schedulers) & long
    found: defaultdict[int, Lane] = defaultdict(list)
    columns = (table[name][mine].tolist() for name in ("t", "value", "place"))
    for stop, seconds, place in zip(*columns, strict=True):
        took = round(min(seconds * 1e9, stop - begin))
        found[place].append((stop - took, stop, What(STEP["place"], place)))
    return {place: innermost(lane) for place, lane in found.items()}
