"""Counts: how much there was to do, whatever mood the machine was in.

Those that follow from the program alone are the same in every run of it. Others vary a little with
where the scheduler put tasks: these are judged by their range. One that changed counts if it is
worth it (`worth`): if what is more of it takes time that somebody may notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.attempts import ran
from stageprof_collectors.comparison.worth import Walls, Why
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.preflight.rates import BYTES_S, EACH_S
from stageprof_runtime.handover import CLUSTER

if TYPE_CHECKING:
    from stageprof_collectors.comparison.measured import Measured, Place
    from stageprof_collectors.recording import Recording

#: A count that is higher by no more than this share is no regression.
TOLERANCE: Final = 0.05
#: So many recordings a side show by how much a count varies that does.
ENOUGH: Final = 3
#: Seconds that one of a thing takes where it takes long: a task, or a byte on its way; a state
#: change is a fifth of a task, which has five or so, and an object counts from 100 kB on.
_TASK_S: Final = EACH_S[CLUSTER][1]
_BYTE_S: Final = 1 / BYTES_S[0]
#: The share of a side's recordings that have a finding if the side has it.
MOSTLY: Final = 0.75


class Judged(StrEnum):
    """What was said of a change."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    #: it cannot be said, or was not to be
    UNKNOWN = "unknown"


class Count(NamedTuple):
    """A thing that is counted."""

    name: str
    #: what it is in words
    title: str
    unit: str
    #: whether it differs from run to run of one program
    varies: bool
    #: seconds that one more takes at most, as is usual
    each_s: float


COUNTS: Final = (
    Count("tasks", "tasks run", "", varies=True, each_s=_TASK_S),
    Count("graph_tasks", "tasks in graphs", "", varies=False, each_s=_TASK_S),
    Count("layers", "layers", "", varies=False, each_s=_TASK_S),
    Count("graph_bytes", "graphs as sent", "B", varies=False, each_s=_BYTE_S),
    Count("pickled_bytes", "pickled", "B", varies=True, each_s=_BYTE_S),
    Count("transferred_bytes", "moved between workers", "B", varies=True, each_s=_BYTE_S),
    Count("transitions", "transitions of tasks", "", varies=True, each_s=_TASK_S / 5),
    Count("embedded_copies", "embedded objects sent", "", varies=True, each_s=_TASK_S),
)


def counted(recording: Recording) -> dict[str, float]:
    """The counts of a recording; NaN where it does not say."""
    steps, computations = recording.steps(), recording.handed_over
    cost = recording.coverage()["overhead"].get("scheduler.transition")
    groups, objects = recording.groups, recording.objects()
    dumps = steps["step"].str.endswith(".dump")
    return {
        "tasks": float(ran(recording.timeline.runs).sum()),
        "graph_tasks": float(computations["graph_tasks"].sum()),
        "layers": float(len(np.unique(groups.of_run))),
        "graph_bytes": float(computations["graph_bytes"].sum()),
        "pickled_bytes": float(steps["bytes"][dumps].sum()),
        "transferred_bytes": float(steps["bytes"][steps["step"] == "data.transfer"].sum()),
        "transitions": float(cost["calls"]) if cost else float("nan"),
        "embedded_copies": float(np.maximum(objects["copies"], objects["tasks"]).sum()),
    }


class CountChange(NamedTuple):
    """A count on both sides: their ranges, and what is said of them."""

    what: Count
    #: smallest, median and largest of each side; NaN where it is not known
    before: tuple[float, float, float]
    after: tuple[float, float, float]
    judged: Judged
    #: why one that is outside of what the other side had is taken for the same
    why: Why = Why.NONE


def count_changes(
    base: Sequence[Measured], head: Sequence[Measured], walls: Walls
) -> tuple[CountChange, ...]:
    """Every count, judged; only one that is outside of what the other side had has changed.

    Args:
        base: recordings of one side.
        head: recordings of the other.
        walls: their wall times, which say whether a change is worth it.
    """
    return tuple(_weighed(_count_change(count, base, head), walls) for count in COUNTS)


def _weighed(change: CountChange, walls: Walls) -> CountChange:
    """The same, if it is worth it."""
    before, after = change.before[1], change.after[1]
    why = Why.NONE
    if change.judged == Judged.WORSE:
        why = walls.against(before, after, change.what.each_s)
    elif change.judged == Judged.BETTER and walls.little(after, before, change.what.each_s):
        why = Why.LITTLE
    return change if why == Why.NONE else change._replace(judged=Judged.SAME, why=why)


def _count_change(count: Count, base: Sequence[Measured], head: Sequence[Measured]) -> CountChange:
    before, after = (
        _range([each.counts.get(count.name, float("nan")) for each in side])
        for side in (base, head)
    )
    few = min(len(base), len(head)) < ENOUGH
    unknown = np.isnan(before[1]) or np.isnan(after[1]) or (count.varies and few)
    if unknown and before != after:
        judged = Judged.UNKNOWN
    elif _above(after, before):
        judged = Judged.WORSE
    else:
        judged = Judged.BETTER if _above(before, after) else Judged.SAME
    return CountChange(count, before, after, judged)


def _range(values: list[float]) -> tuple[float, float, float]:
    return min(values), float(np.median(values)), max(values)


def _above(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    """Whether all of one side is above the other's range, and by more than that range is wide."""
    low, _, high = other
    return one[0] > high * (1 + TOLERANCE) and one[0] > high + (high - low)


class FindingChange(NamedTuple):
    """A finding that came or went."""

    rule: str
    severity: Severity
    headline: str
    cost_s: float
    #: whether it came or went
    came: bool
    #: how many recordings of each side have it, and how many there are
    before: tuple[int, int]
    after: tuple[int, int]
    judged: Judged


def finding_changes(
    base: Sequence[Measured], head: Sequence[Measured]
) -> tuple[FindingChange, ...]:
    """What most recordings of one side have and none of the other, the costliest first.

    What is a mere note is left out; and where the other side has it as a note, it did not come. A
    finding rests on times: of few recordings one may have it by chance, which is not judged.
    """
    places = dict.fromkeys(place for each in (*head, *base) for place in each.findings)
    changes = (_finding_change(place, base, head) for place in places)
    found = [change for change in changes if change is not None]
    return tuple(sorted(found, key=lambda f: (not f.came, -f.cost_s)))


def _finding_change(
    place: Place, base: Sequence[Measured], head: Sequence[Measured]
) -> FindingChange | None:
    few = min(len(base), len(head)) < ENOUGH
    for without, having, came in ((base, head, True), (head, base, False)):
        grave = [each.findings[place] for each in having if _grave(each, place)]
        if any(place in each.findings for each in without) or len(grave) < MOSTLY * len(having):
            continue
        found = max(grave, key=lambda each: each.cost_s)
        numbers = ((0, len(without)), (len(grave), len(having)))
        before, after = numbers if came else numbers[::-1]
        judged = Judged.UNKNOWN if few else Judged.WORSE if came else Judged.BETTER
        said = found.severity, found.headline, found.cost_s
        return FindingChange(place.rule, *said, came, before, after, judged)
    return None


def _grave(each: Measured, place: Place) -> bool:
    found = each.findings.get(place)
    return found is not None and found.severity != Severity.NOTE
