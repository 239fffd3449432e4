"""The check of arrays that are indexed by positions out of order."""

from __future__ import annotations

from collections.abc import Iterator

from stageprof_collectors.findings.finding import Finding, Where
from stageprof_collectors.findings.rule import Limits
from stageprof_collectors.preflight.check import Check, about, middle
from stageprof_collectors.preflight.plan import Layer, Plan
from stageprof_collectors.rules.unsorted_index import RULE, fix, headline
from stageprof_runtime.handover import CLUSTER


def find(plan: Plan, limits: Limits) -> Iterator[Finding]:
    """One finding for each layer, on a cluster: elsewhere a task costs next to nothing."""
    if plan.scheduler != CLUSTER:
        return
    for layer in plan.layers:
        if layer.in_order and layer.tasks >= max(limits["tasks"], limits["times"] * layer.in_order):
            yield _finding(plan, layer)


def _finding(plan: Plan, layer: Layer) -> Finding:
    cost = plan.rates.of_tasks(layer.tasks - layer.in_order)
    # At least nothing: tasks that work for long hide what it takes to hand out the next.
    saved = cost if plan.rates.wall_s else (0.0, cost[1])
    said = headline(layer.tasks, layer.in_order, layer.file, layer.line)
    return Finding(
        rule=RULE.id,
        severity=plan.rates.severity(saved),
        headline=f"{said}; the others take {about(cost)} beside their work",
        stage=None,
        evidence={
            "tasks": layer.tasks,
            "tasks_in_order": layer.in_order,
            "predicted_from": plan.rates.source,
        },
        cost_s=middle(cost),
        saving_s=saved,
        fix=fix(layer.tasks, layer.in_order),
        where=Where(layer.file, layer.line, "", layer.name, layer.prefix),
        cause=f"layer:{layer.name}",
    )


CHECKS = (Check(RULE.id, find, RULE.limits),)
