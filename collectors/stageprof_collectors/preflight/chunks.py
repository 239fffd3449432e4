"""The check of arrays in files: chunks that cut across those of the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dask.utils import key_split

from stageprof_collectors.findings.finding import Finding, Severity, Where
from stageprof_collectors.findings.rule import Limits
from stageprof_collectors.preflight.check import NOT_KNOWN, Check
from stageprof_collectors.preflight.plan import Plan
from stageprof_collectors.rules import misaligned_chunks
from stageprof_collectors.rules.misaligned_chunks import fix, headline, shapes_of
from stageprof_runtime.loaded import STORED, Unused
from stageprof_runtime.stage import Stage

#: Unpacked so often, it takes most of the time of nearly any program.
MANY: Final = 10.0


def find(plan: Plan, limits: Limits) -> Iterator[Finding]:
    """One finding for what a line asks for, be it of one file or of a hundred."""
    seen: set[object] = set()
    for row in plan.loaded:
        times, line = row.total / max(1, row.used), plan.line_of(row.variable)
        if row.how == STORED and (line, row.label) not in seen and times >= limits["times"]:
            seen.add((line, row.label))
            yield _finding(row, times, line)


def _finding(row: Unused, times: float, line: tuple[str, int]) -> Finding:
    shapes = shapes_of(row.label)
    return Finding(
        rule=misaligned_chunks.RULE.id,
        severity=Severity.SERIOUS if times >= MANY else Severity.MODERATE,
        headline=headline(shapes, times, *line),
        stage=Stage.EXECUTION,
        evidence={"times_unpacked": round(times, 2)},
        cost_s=NOT_KNOWN[0],
        saving_s=NOT_KNOWN,
        fix=fix(shapes),
        where=Where(*line, "", row.variable, key_split(row.variable)),
        cause=f"layer:{row.variable}",
    )


CHECKS = (Check(misaligned_chunks.RULE.id, find, misaligned_chunks.RULE.limits),)
