"""No rule found anything that matters: where the time went, and what could be saved at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stageprof_collectors.findings.finding import Finding, Fix, Severity
from stageprof_collectors.findings.innocence import at_most, unexplained
from stageprof_collectors.findings.quantity import seconds, share
from stageprof_collectors.findings.rule import Limits, Rule
from stageprof_runtime.stage import SIX, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What Dask does around the tasks' own work; taking that work itself away would be no fix.
_AROUND = tuple(stage for stage in SIX if stage != Stage.EXECUTION)

#: A bound above this share of the wall time is no acquittal: something is there, unknown to the
#: rules. Below, even a perfect fix would be "moderate" at most.
_ACQUITTED = 0.1

#: From this share on it is the tasks themselves that the run consists of.
_MOSTLY = 0.5

_OWN = (
    "{work} of the time is the execution of your tasks and your own code. What makes this faster "
    "is faster code inside the tasks, less data, or more workers; Dask's settings are not it."
)
_AROUND_IT = (
    "{work} of the time is the execution of your tasks and your own code; of what is around them "
    "no known cause was found. The table of steps says where it goes: steps()."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:  # noqa: ARG001 (it has none)
    """The one finding; it is asked for only if there is no other above a note."""
    shares = {str(s): float(part) for s, part in recording.stages()["share"].items()}
    bounds = {stage: at_most(recording, stage) for stage in _AROUND}
    stage = max(bounds, key=lambda stage: bounds[stage])
    most = min(bounds[stage] + unexplained(recording), recording.wall)
    work = shares[Stage.EXECUTION] + shares[Stage.OUTSIDE]
    yield Finding(
        rule=RULE.id,
        severity=Severity.NOTE,
        headline=_headline(most, stage, recording.wall),
        stage=None,
        evidence=_evidence(shares, stage, most),
        cost_s=most,
        saving_s=(0.0, most),
        fix=Fix((_OWN if work >= _MOSTLY else _AROUND_IT).format(work=share(work))),
    )


def _headline(most: float, stage: Stage, wall: float) -> str:
    part = most / wall if wall > 0 else 0.0
    if part > _ACQUITTED:
        return f"No known cause found; at most {seconds(most)} ({share(part)}) lies in {stage}"
    costs = f"{seconds(most)} ({share(part)})"
    return f"Nothing to fix: no stage around the tasks costs more than {costs}"


def _evidence(shares: dict[str, float], stage: Stage, most: float) -> dict[str, float | int | str]:
    return {**{f"{s}_share": shares[s] for s in SIX}, "at_most_s": most, "most_in": str(stage)}


RULE = Rule(
    id="nothing-to-fix",
    stage=None,
    summary="No other rule found anything above a note.",
    find=find,
)
