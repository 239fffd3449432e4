"""The check of a graph that Dask computes by itself, to learn what a function returns."""

from __future__ import annotations

from collections.abc import Iterator

from stageprof_collectors.account.calls import META
from stageprof_collectors.findings.finding import Finding, Severity, Where
from stageprof_collectors.findings.phrase import made_at
from stageprof_collectors.findings.rule import Limits
from stageprof_collectors.preflight.check import NOT_KNOWN, Check
from stageprof_collectors.preflight.plan import Plan
from stageprof_collectors.rules import meta_computed
from stageprof_runtime.stage import Stage


def find(plan: Plan, _limits: Limits) -> Iterator[Finding]:
    """One for such a graph: what comes after it is seen only once it is not needed."""
    if any(layer.prefix == META for layer in plan.layers):
        asked = [layer for layer in plan.layers if layer.prefix != META]
        function = asked[0].prefix if asked else ""
        yield Finding(
            rule=meta_computed.RULE.id,
            severity=Severity.MODERATE,
            headline=(
                f"Dask runs `{function or 'a task'}`{made_at(plan.file, plan.line)} only to learn "
                "what it returns"
            ),
            stage=Stage.CONSTRUCTION,
            evidence={"tasks": plan.tasks},
            cost_s=NOT_KNOWN[0],
            saving_s=NOT_KNOWN,
            fix=meta_computed.fix(function),
            where=Where(plan.file, plan.line, "", "", function),
            cause=f"meta:{function}",
        )


CHECKS = (Check(meta_computed.RULE.id, find),)
