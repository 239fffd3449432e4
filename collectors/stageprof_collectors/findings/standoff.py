"""Waits for locks, events and the like that never ended: who waits for what, since when."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.underway import ENDED
from stageprof_collectors.findings.holdup import Holdup, of_label
from stageprof_collectors.tables.crew import Crew
from stageprof_collectors.text import number
from stageprof_runtime.heldup import NAME
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_STEP: Final = STEP["wait.resource"]


class Standoff(NamedTuple):
    """Tasks that wait for one thing, and for how many seconds no task has ended since."""

    what: Holdup
    prefix: str
    tasks: int
    seconds: float


def standoff(recording: Recording) -> Standoff | None:
    """That of most tasks that still waited when the recording ended; None if none did."""
    waits = _waits(recording)
    if not waits or len(waits) < _at_work(recording):
        return None  # another thread is at work: it may have what they wait for
    (prefix, label), tasks = Counter((prefix, label) for _, prefix, label in waits).most_common()[0]
    runs, region = recording.timeline.runs, recording.timeline.region
    done = runs["finished"][np.isin(runs["status"], ENDED)]
    since = max(int(done.max(initial=0)), min(t for t, _, _ in waits))
    return Standoff(of_label(label), prefix, tasks, max(0, region.stop - since) / 1e9)


def _at_work(recording: Recording) -> int:
    """Threads with a task when the recording ended; what a worker has more of stands in line."""
    crew = Crew(recording)
    on = Counter(crew.member_of[crew.going_on].tolist())
    return sum(min(n, crew.members[i].threads) for i, n in on.items() if i >= 0)


def _waits(recording: Recording) -> list[tuple[int, str, str]]:
    """When each wait began that did not end, whose it was, and for what."""
    timeline, places = recording.timeline, recording.store.places
    spans = timeline.spans
    mine = spans["step"] == _STEP
    rows = zip(*(spans[name][mine].tolist() for name in ("place", "thread", "start")), strict=True)
    ended = {(places[p].host, places[p].pid, thread, start) for p, thread, start in rows}
    found = {}
    for t, place, label in timeline.marks(NAME):
        thread, _, rest = label.partition("\t")
        prefix, tab, what = rest.partition("\t")
        who = places[place].host, places[place].pid, number(thread), t
        if tab and who not in ended:  # each worker of a process tells of it
            found[who] = t, prefix, what
    return list(found.values())
