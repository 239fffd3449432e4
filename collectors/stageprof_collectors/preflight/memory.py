"""The check of memory: what a worker will have to hold at least, against what it may take.

What must be held for certain: the results that are asked for, spread over the workers, and one
piece in and one piece out for each thread. What tasks take beside that nobody knows before a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where
from stageprof_collectors.findings.phrase import made_at
from stageprof_collectors.findings.quantity import count, share, size
from stageprof_collectors.findings.rule import Limits
from stageprof_collectors.findings.sizing import MARGIN, local_cluster, rounded
from stageprof_collectors.preflight.check import NOT_KNOWN, Check
from stageprof_collectors.preflight.cluster import Cluster, Worker
from stageprof_collectors.preflight.plan import Layer, Plan
from stageprof_collectors.rules import memory_near_limit
from stageprof_runtime.stage import Stage

#: A task holds what it is given and what it makes at the same time.
PIECES: Final = 2

_TEXT: Final = (
    "Give each worker {need}, or use smaller chunks or more workers. The results that are asked "
    "for take {results} on each worker, the pieces that its threads work on {pieces}, and its "
    "process takes {now} already; what tasks need beside that comes on top."
)
_SHORT: Final = (
    " {workers} with {need} each are more than this machine has, {machine}: it has to be less in "
    "memory at once, or a larger machine, or several."
)


def find(plan: Plan, limits: Limits) -> Iterator[Finding]:
    """One finding for the worker that is nearest to its first threshold."""
    cluster = plan.cluster
    workers = [w for w in cluster.workers if w.memory_limit] if cluster is not None else []
    if cluster is None or not workers or not any(x.nbytes > 0 for x in plan.layers):
        return
    if any(layer.nbytes < 0 for layer in _outputs(plan)):
        plan.cannot("the memory for results whose size is not known before they are there")
    tight = max(workers, key=lambda w: _need(plan, w, len(workers)) / w.memory_limit)
    need = _need(plan, tight, len(workers))
    if need >= limits["reached"] * cluster.spill * tight.memory_limit:
        yield _finding(plan, tight, need, len(workers), cluster)


def _outputs(plan: Plan) -> list[Layer]:
    return [layer for layer in plan.layers if layer.name in plan.outputs]


def _results(plan: Plan, workers: int) -> int:
    """Bytes of results on one worker."""
    return sum(max(layer.nbytes, 0) for layer in _outputs(plan)) // max(workers, 1)


def _pieces(plan: Plan, worker: Worker, workers: int) -> int:
    """Bytes of pieces that its threads work on at once; a layer of few keeps few busy."""
    return max((_at_once(layer, worker, workers) for layer in plan.layers), default=0)


def _at_once(layer: Layer, worker: Worker, workers: int) -> int:
    threads = min(worker.threads, -(-layer.tasks // max(workers, 1)))
    return PIECES * threads * max(layer.piece_bytes, 0)


def _need(plan: Plan, worker: Worker, workers: int) -> int:
    return worker.memory + _results(plan, workers) + _pieces(plan, worker, workers)


def _finding(plan: Plan, worker: Worker, need: int, workers: int, cluster: Cluster) -> Finding:
    spill = cluster.spill
    enough = rounded(need / spill * MARGIN)
    text = _TEXT.format(
        need=size(enough),
        results=size(_results(plan, workers)),
        pieces=size(_pieces(plan, worker, workers)),
        now=size(worker.memory),
    )
    main = max(plan.layers, key=lambda layer: layer.nbytes)
    part = need / worker.memory_limit
    grave = part >= 1.0
    return Finding(
        rule=memory_near_limit.RULE.id,
        severity=Severity.SERIOUS if grave else Severity.MODERATE,
        headline=(
            f"A worker will hold at least {size(need)} of the {size(worker.memory_limit)} that it "
            f"may take, for `{main.prefix}`{made_at(main.file, main.line)}; from {share(spill)} on "
            f"Dask moves results to disk"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "memory_limit_bytes": worker.memory_limit,
            "process_bytes": worker.memory,
            "results_bytes": _results(plan, workers),
            "pieces_bytes": _pieces(plan, worker, workers),
            "needed_bytes": enough,
            "spill_fraction": spill,
            "pause_fraction": cluster.pause,
        },
        cost_s=NOT_KNOWN[0],
        saving_s=NOT_KNOWN,
        fix=_fix(text, worker, workers, enough, cluster.machine),
        where=Where(main.file, main.line, "", main.name, main.prefix),
        cause="memory",
    )


def _fix(text: str, worker: Worker, workers: int, need: int, machine: int) -> Fix:
    if need * workers > machine > 0:
        many = count(workers, "worker")
        return Fix(text + _SHORT.format(workers=many, need=size(need), machine=size(machine)))
    return Fix(text, local_cluster(workers, worker.threads, need))


CHECKS = (Check("memory-near-limit", find, memory_near_limit.RULE.limits),)
