"""Workers moved results to disk and back because they had too little memory for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.finding import Finding, severity
from stageprof_collectors.findings.quantity import seconds, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.sizing import bigger, sizing
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all workers: they have one cause."""
    spilling = recording.incidents.spilling
    busy, wall = shortage.seconds_of(spilling), recording.wall
    found = sizing(recording) if busy > limits["share"] * wall else None
    if found is None:
        return
    cost = shortage.spill_cost(recording)
    saving = found.likely(shortage.saving(recording, spilling, spill=True))
    written, read = (_bytes(recording, step) for step in ("spill.write", "spill.read"))
    where = shortage.largest(recording)
    yield Finding(
        rule=RULE.id,
        severity=severity(saving, wall),
        headline=(
            f"Workers of {size(found.limits.limit)} wrote {size(written)} of results to disk and "
            f"read {size(read)} back; {shortage.named(where)} made the largest: "
            f"{seconds(cost)} of {seconds(wall)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "written_bytes": written,
            "read_bytes": read,
            "spilling_s": busy,
            "workers": len(spilling),
            **shortage.sizes(found),
        },
        cost_s=cost,
        saving_s=saving,
        fix=bigger(recording, found),
        where=where,
        cause=shortage.CAUSE,
    )


def _bytes(recording: Recording, step: str) -> int:
    entries = recording.account.entries.items()
    return sum(entry.nbytes for (code, _), entry in entries if code == STEP[step])


RULE = Rule(
    id="spilling",
    stage=Stage.EXECUTION,
    summary="Workers wrote results to disk and read them back.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "share": Limit(
            0.01, "seconds of spilling by wall seconds: below 1 % it is lost among other causes"
        )
    },
)
