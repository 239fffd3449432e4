"""Blocking calls that had begun and not ended when the recording did: its program was killed.

The client says of each call that lasts when it began. Of one that began right before the end, and
in older recordings, it did not: there the caller waited if the last that it did was to hand over a
graph whose tasks were still running.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.underway import running
from stageprof_collectors.text import number
from stageprof_runtime.underway import TELLS, WAITS

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Timeline

#: Calls that began so long before the client was heard of last were told of, if they went on, ns.
TOLD_NS: Final = 1_500_000_000
#: What a call is named that was not told of.
UNTOLD: Final = "unended"

#: A place, and a thread or async region of it.
Lane = tuple[int, int]


def unended(timeline: Timeline, ended: dict[Lane, int]) -> Iterator[tuple[Lane, int, str]]:
    """The lane of each such call, when it began (ns), and which it is.

    Args:
        timeline: of the recording.
        ended: when the last call of each lane began that ended, ns.
    """
    region = timeline.region
    own = region.place, region.lane
    came, told = _came(timeline, ended), _told(timeline)
    if region.ended:  # and what that thread waited for
        told.pop(own, None)
    elif own not in told and not region.attached:
        yield from _untold(timeline, own, came.get(own, 0), ended.get(own, 0))
    for lane, (start, call) in told.items():
        if start > came.get(lane, 0):  # else it has ended, and its row was lost
            yield lane, start, call


def _told(timeline: Timeline) -> dict[Lane, tuple[int, str]]:
    """The last call of each lane that was told of."""
    found = {}
    for t, place, label in timeline.marks(WAITS):
        lane, _, call = label.partition(" ")
        sign = -1 if lane.startswith("-") else 1
        found[place, sign * number(lane.removeprefix("-"))] = t, call
    return found


def _came(timeline: Timeline, ended: dict[Lane, int]) -> dict[Lane, int]:
    """When each lane last began what it does between calls, or a call that ended, ns."""
    came: defaultdict[Lane, int] = defaultdict(int, ended)
    table = timeline.read("submit", "t")
    columns = (table[name].tolist() for name in ("place", "thread", "t"))
    for place, thread, t in zip(*columns, strict=True):
        came[place, thread] = max(came[place, thread], t)
    return came


def _untold(
    timeline: Timeline, lane: Lane, came: int, ended: int
) -> Iterator[tuple[Lane, int, str]]:
    """The call that the region's thread is taken to be in since it was last seen."""
    run = running(timeline.runs)
    going_on = run >= 0 and int(timeline.runs["assigned"][run]) >= came
    if not came or came <= ended or not going_on or _would_tell(timeline, lane[0], came):
        return
    yield lane, max(came, _seen(timeline)), UNTOLD


def _would_tell(timeline: Timeline, place: int, since: int) -> bool:
    """Whether a call that began then would have been told of."""
    origin, clock = timeline.store.origins[place], timeline.clocks[place]
    last = int(clock.read(np.array([origin.last_t], np.int64))[0])
    return bool(timeline.marks(TELLS)) and last - since > TOLD_NS


def _seen(timeline: Timeline) -> int:
    """When the last span of the region's own thread ended, ns."""
    region, spans = timeline.region, timeline.spans
    mine = (spans["place"] == region.place) & (spans["thread"] == region.thread)
    return int(spans["stop"][mine].max(initial=0))
