"""Checks of objects in the graph: large ones, and those that pickle slowly for their bytes."""

from __future__ import annotations

from collections.abc import Iterator

import dask

from stageprof_collectors.findings.embedded import SLOW_S, Embedded, is_mapped
from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where
from stageprof_collectors.findings.phrase import introduced, made_at
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.rule import Limits
from stageprof_collectors.preflight.check import Check, about, middle
from stageprof_collectors.preflight.held import Thing
from stageprof_collectors.preflight.plan import Plan
from stageprof_collectors.preflight.rates import OBJECT_S, Interval
from stageprof_collectors.rules import complex_object, embedded_object
from stageprof_collectors.tables.site import Collection
from stageprof_runtime.handover import CLUSTER, PROCESSES
from stageprof_runtime.made import prefix_of
from stageprof_runtime.stage import Stage


def find_large(plan: Plan, limits: Limits) -> Iterator[Finding]:
    """One finding for each large object."""
    for number, thing in enumerate(plan.things if plan.pickled else ()):
        if _travelling(plan, thing) >= limits["nbytes"] and not _is_complex(thing):
            found = _large(plan, thing, number)
            if not _as_recorded(plan, thing, number).once or found.severity != Severity.NOTE:
                yield found


def find_complex(plan: Plan, _limits: Limits) -> Iterator[Finding]:
    """One finding for each object of many objects."""
    for number, thing in enumerate(plan.things if plan.pickled else ()):
        if _is_complex(thing):
            yield _complex(plan, thing, number)
        elif thing.own:
            name = f"`{thing.variable}`" if thing.variable else "an object"
            plan.cannot(f"how long {name} ({thing.type}) takes to pickle: its class does it itself")


def _travelling(plan: Plan, thing: Thing) -> int:
    """Bytes in the graph, or bytes sent with tasks, whichever is more."""
    copies = thing.copies if plan.scheduler == CLUSTER else 0
    return max(thing.nbytes * copies, thing.sent)


def _is_complex(thing: Thing) -> bool:
    """Whether its number of objects takes longer than its bytes."""
    least = thing.objects * OBJECT_S[0]
    return least >= SLOW_S and least * 1e9 > thing.nbytes


def _cost(plan: Plan, thing: Thing) -> Interval:
    """Seconds that it is on its way, over all hops."""
    times = _times(plan, thing)
    low, high = plan.rates.of_bytes(round(thing.nbytes * times))
    each = plan.rates.object_s
    return low + thing.objects * times * each[0], high + thing.objects * times * each[1]


def _saving(plan: Plan, thing: Thing) -> Interval:
    """At least what is left if it travels once, and once to each worker; at most all."""
    low, high = _cost(plan, thing)
    workers = len(plan.cluster.workers) if plan.cluster is not None else 1
    once = min(1.0, (1 + workers) / max(_times(plan, thing), 1.0))
    return low * (1.0 - once), high


def _times(plan: Plan, thing: Thing) -> float:
    """How often all of it travels: with the graph to a scheduler, and with the tasks."""
    copies = thing.copies if plan.scheduler == CLUSTER else 0
    return copies + thing.sent / max(thing.nbytes, 1)


def _as_recorded(plan: Plan, thing: Thing, number: int) -> Embedded:
    """The form in which the rules know it."""
    used = plan.line_of(thing.layer)
    return Embedded(
        number, thing.type, thing.variable, thing.file, thing.line, thing.how, *used,
        frozenset([thing.layer]), thing.nbytes, thing.copies, thing.tasks,
        thing.nbytes * thing.copies, thing.sent, 0.0, 0.0, 0.0,
    )  # fmt: skip


def _large(plan: Plan, thing: Thing, number: int) -> Finding:
    embedded, cost, saved = (
        _as_recorded(plan, thing, number),
        _cost(plan, thing),
        _saving(plan, thing),
    )
    return Finding(
        rule=embedded_object.RULE.id,
        severity=plan.rates.severity(saved),
        headline=f"{embedded_object.described(embedded)}: {about(cost)} on its way",
        stage=Stage.SERIALIZATION,
        evidence=_evidence(plan, thing),
        cost_s=middle(cost),
        saving_s=saved,
        fix=_fix(plan, thing, embedded),
        where=_where(thing),
        cause=embedded.cause,
    )


def _fix(plan: Plan, thing: Thing, embedded: Embedded) -> Fix:
    """As of a recording, by what is known of the layer that holds it."""
    kinds = {layer.name: layer.collection for layer in plan.layers}
    kind = kinds.get(thing.layer, Collection.CALLS)
    return embedded_object.fix(
        embedded,
        futures=is_mapped(thing.how),
        pooled=plan.scheduler == PROCESSES,
        collection=Collection.FRAME if embedded_object.is_tried(thing.how) else kind,
        dask=dask.__version__,
    )


def _complex(plan: Plan, thing: Thing, number: int) -> Finding:
    embedded, cost, saved = (
        _as_recorded(plan, thing, number),
        _cost(plan, thing),
        _saving(plan, thing),
    )
    made = made_at(thing.file, thing.line, " made at ")
    return Finding(
        rule=complex_object.RULE.id,
        severity=plan.rates.severity(saved),
        headline=(
            f"{introduced(thing.type, thing.variable, made)} is made of about "
            f"{thing.objects:,} Python objects and is in {count(thing.tasks, 'task')}: "
            f"{about(cost)} of pickling"
        ),
        stage=Stage.SERIALIZATION,
        evidence={**_evidence(plan, thing), "objects": thing.objects},
        cost_s=middle(cost),
        saving_s=saved,
        fix=complex_object.fix(embedded, _fix(plan, thing, embedded) if embedded.shared else None),
        where=_where(thing),
        cause=embedded.cause,
    )


def _where(thing: Thing) -> Where:
    return Where(thing.file, thing.line, thing.variable, thing.layer, prefix_of(thing.layer))


def _evidence(plan: Plan, thing: Thing) -> dict[str, float | int | str]:
    return {
        "type": thing.type,
        "object_bytes": thing.nbytes,
        "copies_in_graph": thing.copies,
        "tasks": thing.tasks,
        "sent_bytes": thing.sent,
        "how": thing.how,
        "predicted_from": plan.rates.source,
    }


CHECKS = (
    Check("embedded-object", find_large, embedded_object.RULE.limits),
    Check("complex-object", find_complex, complex_object.RULE.limits),
)
