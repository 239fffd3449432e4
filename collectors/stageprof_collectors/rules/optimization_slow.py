"""The caller waited while graphs were optimized."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.attempts import ran
from stageprof_collectors.account.calls import Calls
from stageprof_collectors.account.path import Step
from stageprof_collectors.findings.advice import one_function
from stageprof_collectors.findings.crowd import CHAIN
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.metas import Asking
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.site import Site
from stageprof_runtime.stage import STEP, Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_EXPR, _LOWLEVEL = STEP["expr"], STEP["lowlevel"]

_TEXT: Final = (
    "Do many operations in one function: the optimizer goes through all operations again and "
    "again, and with one function it has nothing to do. Or split the query: `persist` a part that "
    "several results use and go on from there; what is computed is not optimized again."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding: whatever the optimizer gets, it goes through all of it."""
    if recording.timeline.region.attached:  # the client was not watched
        return
    asking = Asking(recording, Calls(recording).metas)
    took = {step: _took(recording, step, asking) for step in (_EXPR, _LOWLEVEL)}
    cost = sum(took.values())
    if not cost or cost < max(limits["seconds"], limits["share"] * recording.wall):
        return
    if 0 < _given(recording) < limits["operations"]:
        return
    label = _label(recording, rewritten=took[_EXPR] >= took[_LOWLEVEL])
    site = Site(recording, recording.crowds.groups, label)
    saved = recording.replay.saving(_change(recording, site, asking))
    place = _place(recording)
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"Optimizing graphs on the {place} took {of_wall(cost, recording)}; most operations "
            f"were made{made_at(site.file, site.line) or ' at lines that are not known'}"
        ),
        stage=Stage.OPTIMIZATION,
        evidence={
            "expr_s": took[_EXPR],
            "lowlevel_s": took[_LOWLEVEL],
            "ran_on": place,
            **_operations(recording),
            "tasks": int(ran(recording.timeline.runs).sum()),
            "layers_of_line": site.layers,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_TEXT, one_function(site.collection)),
        where=Where(site.file, site.line, "", site.layer, site.prefix),
        cause=recording.crowds.cause(site.label) if site.label else "optimization",
    )


def _took(recording: Recording, step: int, asking: Asking) -> float:
    """Seconds of the blocking account but those in which a task was waited for."""
    mine = (s for s in recording.path_steps if s.what.step == step)
    return sum((s.stop - s.start) * (1.0 - asking.part(s)) for s in mine) / 1e9


def _operations(recording: Recording) -> dict[str, int]:
    """Operations before and after each pass, of the graph that had most of them."""
    found: dict[str, int] = {}
    for step, name in ((_EXPR, "expr"), (_LOWLEVEL, "lowlevel")):
        counts = _counts(recording, step)
        if counts:
            before, after = max(counts)
            found |= {f"{name}_operations": before, f"{name}_operations_left": after}
    return found


def _given(recording: Recording) -> int:
    """Operations that the pass with most of them was given, in all graphs; 0: not counted."""
    return max(sum(before for before, _ in _counts(recording, step)) for step in (_EXPR, _LOWLEVEL))


def _counts(recording: Recording, step: int) -> list[tuple[int, int]]:
    """Operations of each graph before and after a pass."""
    labels = [label.split() for _, _, label in recording.timeline.marks("optimized")]
    return [(int(label[1]), int(label[2])) for label in labels if label[0] == str(step)]


def _label(recording: Recording, *, rewritten: bool) -> str:
    """The line that made most of what was optimized.

    Expressions tell of the line that made them while they are rewritten. Of the layers of a graph
    that was fused little is left to tell: there it is the line that took longest to build them.
    """
    if rewritten:
        lines = recording.lines().sort_values("optimization_s", ascending=False)
        lines = lines[lines["file"] != ""]
        return f"{lines['file'].iloc[0]}:{lines['line'].iloc[0]}" if len(lines) else ""
    texts, seconds = recording.store.strings, defaultdict[str, int](int)
    for start, stop, what, run in recording.path_steps:
        if run < 0 and stage_of(what.step) == Stage.CONSTRUCTION and ":" in texts[what.label]:
            seconds[texts[what.label]] += stop - start
    return max(seconds, key=lambda label: seconds[label], default="")


def _change(recording: Recording, site: Site, asking: Asking) -> Change:
    """No optimization; and of a graph's layers that the line made one is left of many."""
    mine = site.runs
    layers = site.layers / max(1, len(np.unique(recording.replay.owner[mine])))
    parts = np.where(mine, 1.0 / layers if layers >= CHAIN else 1.0, 1.0)

    def left(step: Step) -> float:
        return asking.part(step) if stage_of(step.what.step) == Stage.OPTIMIZATION else 1.0

    return Change(lead=parts, begin=parts, lag=parts, serial=left)


def _place(recording: Recording) -> str:
    """The role of the process that most of it ran in."""
    walls: defaultdict[str, int] = defaultdict(int)
    for (step, role), entry in recording.account.entries.items():
        walls[role] += entry.wall * (step in (_EXPR, _LOWLEVEL))
    return max(walls, key=lambda role: walls[role], default="") or "client"


RULE = Rule(
    id="optimization-slow",
    stage=Stage.OPTIMIZATION,
    summary="Optimizing graphs takes more than a share of the run.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.05, "of the wall time: it is rarely worth a thought below that"),
        "seconds": Limit(0.1, "of the blocking account: any graph takes some milliseconds of it"),
        "operations": Limit(50, "of all graphs: fewer give a function little to put together"),
    },
)
