"""Workers' memory came close to what they may take, and more than one thing came of it.

Where only spilling, only pauses, a leak or a wrong size came of it, those rules say more; here it
is a note, which has their cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.finding import Finding, severity
from stageprof_collectors.findings.misjudged import misjudged
from stageprof_collectors.findings.quantity import seconds, share, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.sizing import bigger, sizing
from stageprof_collectors.tables.memory import Limits as Thresholds
from stageprof_collectors.tables.memory import Taken
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


#: Seconds: the shortest pause that Dask makes.
_PAUSE_S: Final = 0.1
#: By what factor sizes have to be wrong for that to be the cause, as in sizeof-wrong.
OFF: Final = 2.0


class Near(NamedTuple):
    """The threshold that a worker came closest to, and how close: 1 is there."""

    what: str
    reached: float
    #: bytes taken, and the fraction of the limit at which the threshold is
    taken: int
    fraction: float


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all workers: they have one cause."""
    memory = recording.memory
    near = [nearest(thresholds, memory.of(p)) for p, thresholds in memory.limits.items()]
    over = [n for n in near if n is not None and n.reached >= limits["reached"]]
    found = sizing(recording) if over else None
    if found is None:
        return
    spilling = shortage.seconds_of(recording.incidents.spilling)
    paused = shortage.seconds_of(shortage.paused(recording))
    if spilling > limits["spilling"] * max(paused, _PAUSE_S):
        return  # that is spilling, which says so itself
    worst, wall = max(over, key=lambda n: n.reached * n.fraction), recording.wall
    several = _several(recording, limits["share"] * wall)
    trouble = shortage.both(recording) if several else {}
    saving = shortage.saving(recording, trouble, spill=True) if several else (0.0, 0.0)
    saving = found.likely(saving)
    cost = shortage.spill_cost(recording) + shortage.pause_cost(recording)
    yield Finding(
        rule=RULE.id,
        severity=severity(saving, wall),
        headline=(
            f"A worker took {size(worst.taken)} of the {size(found.limits.limit)} that it may "
            f"take; from {share(worst.fraction)} on Dask {worst.what}: "
            f"{seconds(cost)} of {seconds(wall)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "workers_near": len(over),
            "reached": worst.reached,
            "spilling_s": spilling,
            "paused_s": paused,
            **shortage.sizes(found),
        },
        cost_s=cost,
        saving_s=saving,
        fix=bigger(recording, found),
        where=shortage.largest(recording),
        cause=shortage.CAUSE,
    )


def nearest(limits: Thresholds, taken: Taken) -> Near | None:
    """The gravest threshold that was reached, or else the one that was nearest; None without."""
    process, managed = taken.peak, taken.managed_peak
    thresholds = [
        ("ends the worker", process, limits.terminate),
        ("pauses the worker", process, limits.pause),
        ("moves results to disk", process, limits.spill),
        ("moves results to disk", managed, limits.target),
    ]
    near = [
        Near(what, nbytes / (fraction * limits.limit), nbytes, fraction)
        for what, nbytes, fraction in thresholds
        if fraction > 0
    ]
    reached = [n for n in near if n.reached >= 1]
    return reached[0] if reached else max(near, key=lambda n: n.reached, default=None)


def _several(recording: Recording, least: float) -> bool:
    """Whether workers both spilled and were paused for a time that counts, and nothing else."""
    spilled = shortage.seconds_of(recording.incidents.spilling)
    if min(spilled, shortage.seconds_of(shortage.paused(recording))) <= least:
        return False
    return not any(wrong.over for wrong in misjudged(recording, OFF))


RULE = Rule(
    id="memory-near-limit",
    stage=Stage.EXECUTION,
    summary="Workers' memory came close to what they may take, or went beyond.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "spilling": Limit(4.0, "times as long as workers were paused: then `spilling` says more"),
        "reached": Limit(
            0.95, "of a threshold: within 5 % of it the next larger chunk of data crosses it"
        ),
        "share": Limit(
            0.01, "seconds of spilling, and of pauses, by wall seconds, for both to be counted"
        ),
    },
)
