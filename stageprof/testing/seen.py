"""What one recording of a test showed: plain numbers, kept when the recording is gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from stageprof.recording import Recording
from stageprof.testing.limits import Limits
from stageprof_collectors.account.blame import on_path
from stageprof_collectors.account.groups import NOBODY, Row
from stageprof_collectors.findings.finding import Finding, Severity, at_least
from stageprof_runtime.stage import SIX, Stage, stage_of, step_name

#: A layer is named, rather than what belongs to none, if it took this share of the stage.
_WORTH: Final = 0.1
_NO_ROW: Final = Row("", "", "", 0)


class Spot(NamedTuple):
    """Where most of a stage's wall time went; a layer "" is no layer's."""

    stage: Stage
    row: Row = _NO_ROW
    step: str = ""
    seconds: float = 0.0


class Seen(NamedTuple):
    """One recording of a test."""

    wall_s: float
    #: wall seconds of the six stages, `outside` and `unexplained`
    stages: Mapping[Stage, float]
    #: the costliest layer and step of each stage that took time
    spots: Mapping[Stage, Spot]
    #: graver than the limit
    findings: tuple[Finding, ...] = ()


def seen(recording: Recording, limits: Limits) -> Seen:
    """What limits are judged by, no more: findings are looked for if they are limited."""
    frame = recording.stages()
    stages = {Stage(s): float(w) for s, w in zip(frame.index, frame["wall_s"], strict=True)}
    spots = _spots(recording) if limits.max_stage or limits.max_wall_s is not None else {}
    worst = limits.no_findings_above
    findings = () if worst is None else _graver(recording.findings(), worst)
    return Seen(recording.wall, stages, spots, findings)


def _graver(findings: list[Finding], limit: Severity) -> tuple[Finding, ...]:
    return tuple(found for found in findings if not at_least(limit, found.severity))


def _spots(recording: Recording) -> dict[Stage, Spot]:
    by_step = {step: parts for step, parts in on_path(recording).items() if stage_of(step) in SIX}
    rows = recording.groups.rows
    return {stage: _spot(stage, by_step, rows) for stage in {stage_of(step) for step in by_step}}


def _spot(stage: Stage, by_step: Mapping[int, Mapping[int, float]], rows: list[Row]) -> Spot:
    """The layer that took most of a stage, and the step that took most of that."""
    of_stage = {step: parts for step, parts in by_step.items() if stage_of(step) == stage}
    sums: defaultdict[int, float] = defaultdict(float)
    for parts in of_stage.values():
        for row, ns in parts.items():
            sums[row] += ns
    least = sum(sums.values()) * _WORTH
    most = max(sums, key=lambda row: (row != NOBODY and sums[row] >= least, sums[row]))
    step = max(of_stage, key=lambda step: of_stage[step].get(most, 0.0))
    return Spot(stage, rows[most], step_name(step), sums[most] / 1e9)
