"""The check of operations on data frames that Dask can fuse and is not asked to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from stageprof_collectors.findings.finding import Finding, Where
from stageprof_collectors.findings.phrase import made_at
from stageprof_collectors.findings.rule import Limits
from stageprof_collectors.preflight.check import Check, about, middle
from stageprof_collectors.preflight.plan import Layer, Plan
from stageprof_collectors.rules import unfused_frame
from stageprof_runtime.stage import Stage


class Unfused(NamedTuple):
    """The layers that would be fused, and the tasks that would be left of theirs."""

    layers: list[Layer]
    left: int
    #: layers of the largest group
    longest: int

    @property
    def tasks(self) -> int:
        """Of all of them now."""
        return sum(layer.tasks for layer in self.layers)


def unfused(plan: Plan) -> Unfused:
    """All groups of a plan."""
    layers = {layer.name: layer for layer in plan.layers}
    groups: defaultdict[str, list[Layer]] = defaultdict(list)
    for name, last in plan.unfused:
        if name in layers and last in layers and layers[name].tasks == layers[last].tasks:
            groups[last].append(layers[name])
    mine = [group for group in groups.values() if len(group) > 1]
    return Unfused(
        [layer for group in mine for layer in group],
        sum(group[0].tasks for group in mine),
        max(map(len, mine), default=0),
    )


def find(plan: Plan, limits: Limits) -> Iterator[Finding]:
    """One finding for all data frames of a plan."""
    found = unfused(plan)
    if found.tasks - found.left >= limits["tasks"]:
        yield _finding(plan, found)


def _finding(plan: Plan, found: Unfused) -> Finding:
    tasks, cost = found.tasks, plan.rates.of_tasks(found.tasks)
    saved = plan.rates.saving(tasks, 1.0 - found.left / tasks)
    main = max(found.layers, key=lambda layer: layer.line > 0)
    return Finding(
        rule=unfused_frame.RULE.id,
        severity=plan.rates.severity(saved),
        headline=(
            f"{tasks:,} tasks on data frames that Dask does not fuse, up to {found.longest} for "
            f"each partition, some of `{main.prefix}`{made_at(main.file, main.line)}: "
            f"{about(cost)} beside their work"
        ),
        stage=Stage.OPTIMIZATION,
        evidence={
            "tasks": tasks,
            "fused_tasks": found.left,
            "overhead_each_s": middle(plan.rates.task_s),
            "predicted_from": plan.rates.source,
        },
        cost_s=middle(cost),
        saving_s=saved,
        fix=unfused_frame.fix(found.longest, tasks, found.left, middle(plan.rates.task_s)),
        where=Where(main.file, main.line, "", main.name, main.prefix),
        cause="fusing",
    )


CHECKS = (Check(unfused_frame.RULE.id, find, unfused_frame.RULE.limits),)
