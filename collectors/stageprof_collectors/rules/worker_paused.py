"""Workers took no more tasks for a while because their processes were near their memory limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.finding import Finding, severity
from stageprof_collectors.findings.quantity import count, seconds, share, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.sizing import bigger, sizing
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all workers: they have one cause."""
    pauses = shortage.paused(recording)
    paused, wall = shortage.seconds_of(pauses), recording.wall
    found = sizing(recording) if paused > limits["share"] * wall else None
    if found is None:
        return
    cost = shortage.pause_cost(recording)
    saving = found.likely(shortage.saving(recording, pauses, spill=False))
    times = sum(map(len, pauses.values()))
    yield Finding(
        rule=RULE.id,
        severity=severity(saving, wall),
        headline=(
            f"Workers of {size(found.limits.limit)} were paused {count(times, 'time')}, "
            f"{seconds(paused)} in all, with their memory over {share(found.limits.pause)} full: "
            f"{seconds(cost)} of {seconds(wall)} was spent waiting for them"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "pauses": times,
            "paused_s": paused,
            "longest_s": max((b - a) / 1e9 for spans in pauses.values() for a, b in spans),
            "workers": len(pauses),
            **shortage.sizes(found),
        },
        cost_s=cost,
        saving_s=saving,
        fix=bigger(recording, found),
        where=shortage.largest(recording),
        cause=shortage.CAUSE,
    )


RULE = Rule(
    id="worker-paused",
    stage=Stage.EXECUTION,
    summary="Workers took no tasks for a while, being near their memory limit.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "share": Limit(
            0.01, "seconds paused by wall seconds: a task that ends soon after is not held up"
        )
    },
)
