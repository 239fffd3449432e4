"""The check of memory: what a worker will have to hold at least, against what it may take.

What must be held for certain: the results that are asked for, spread over the workers, and the
pieces that each thread is given and makes; and where `compute` puts a result together, on one
worker all of its pieces and the whole. What tasks take beside that nobody knows before a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where
from stageprof_collectors.findings.phrase import made_at
from stageprof_collectors.findings.quantity import count, share, size
from stageprof_collectors.findings.rule import Limits
from stageprof_collectors.findings.sizing import MARGIN, local_cluster, plain, rounded
from stageprof_collectors.preflight.check import NOT_KNOWN, Check
from stageprof_collectors.preflight.cluster import Cluster, Worker
from stageprof_collectors.preflight.plan import Layer, Plan
from stageprof_collectors.rules import memory_near_limit
from stageprof_runtime.stage import Stage

_TEXT: Final = (
    "Give each worker {need}, or use smaller chunks or more workers. The results that are asked "
    "for take {results} on each worker, the pieces that its threads work on {pieces}, and its "
    "process takes {now} already; what tasks need beside that comes on top."
)
_JOINED: Final = (
    "Do not bring the whole together: compute what you look at on the workers (a mean, a few "
    "rows), write it piece by piece (`to_zarr`), or leave it where it is (`persist`). `compute` "
    "has one task on one worker put it together, which holds its pieces and the whole at once, "
    "{results} each, and the client takes as much again. Smaller chunks or more workers do not "
    "help. Or give each worker {need}: its process takes {now} already."
)
_SHORT: Final = (
    " {workers} with {need} each are more than this machine has, {machine}: it has to be less in "
    "memory at once, or a larger machine, or several."
)
_APART: Final = """\
answer = data.mean().compute()  # whatever you do with the array, before .compute()
data.to_zarr("result.zarr")  # or write it from the workers; needs zarr"""
_ELSEWHERE: Final = """\
# {workers}, each with {need}: where they are started, or with your cluster's own option
# dask worker SCHEDULER --nthreads {threads} --memory-limit {plain}"""


class _Need(NamedTuple):
    """Bytes that a worker will have to hold at least."""

    process: int
    #: of results; where one task puts them together, the whole
    results: int
    #: that its threads work on at once
    pieces: int
    joined: bool = False

    @property
    def whole(self) -> int:
        """All of it."""
        return self.process + self.results + self.pieces


def find(plan: Plan, limits: Limits) -> Iterator[Finding]:
    """One finding for the worker that is nearest to its first threshold."""
    cluster = plan.cluster
    workers = [w for w in cluster.workers if w.memory_limit] if cluster is not None else []
    if cluster is None or not workers or not any(x.nbytes > 0 for x in plan.layers):
        return
    if any(layer.nbytes < 0 for layer in _outputs(plan)):
        plan.cannot("the memory for results whose size is not known before they are there")
    needs = {worker: _need(plan, worker, len(workers)) for worker in workers}
    tight = max(workers, key=lambda worker: needs[worker].whole / worker.memory_limit)
    if needs[tight].whole >= limits["reached"] * cluster.spill * tight.memory_limit:
        yield _finding(plan, tight, needs[tight], len(workers), cluster)


def _outputs(plan: Plan) -> list[Layer]:
    return [layer for layer in plan.layers if layer.name in plan.outputs]


def _results(plan: Plan, workers: int) -> int:
    """Bytes of results on one worker: as much as on the others, and no less than a piece."""
    outputs = _outputs(plan)
    even = sum(max(layer.nbytes, 0) for layer in outputs) // max(workers, 1)
    return max(even, *(layer.piece_bytes for layer in outputs), 0)


def _whole(plan: Plan) -> int:
    """Bytes of the largest result that one task puts together; a single piece is not copied."""
    sizes = {layer.name: max(layer.nbytes, 0) for layer in plan.layers if layer.tasks > 1}
    return max((sum(sizes.get(name, 0) for name in names) for names in plan.joined), default=0)


def _pieces(plan: Plan, worker: Worker, workers: int) -> int:
    """Bytes of pieces that its threads work on at once; a layer of few keeps few busy.

    The results among them are counted as such.
    """
    return max((_at_once(plan, layer, worker, workers) for layer in plan.layers), default=0)


def _at_once(plan: Plan, layer: Layer, worker: Worker, workers: int) -> int:
    threads = min(worker.threads, -(-layer.tasks // max(workers, 1)))
    return (layer.held - (layer.name in plan.outputs)) * threads * max(layer.piece_bytes, 0)


def _need(plan: Plan, worker: Worker, workers: int) -> _Need:
    """The larger of what it holds while tasks run and, for any may be the one, at the end."""
    spread = _Need(worker.memory, _results(plan, workers), _pieces(plan, worker, workers))
    whole = _whole(plan)
    # What puts pieces together holds them and the whole at the same time.
    joined = _Need(worker.memory, whole, whole, joined=True)
    return max(spread, joined, key=lambda need: need.whole)


def _finding(plan: Plan, worker: Worker, need: _Need, workers: int, cluster: Cluster) -> Finding:
    spill = cluster.spill
    enough = rounded(need.whole / spill * MARGIN)
    main = max(plan.layers, key=lambda layer: (layer.nbytes, layer.name in plan.outputs))
    grave = need.whole >= worker.memory_limit
    return Finding(
        rule=memory_near_limit.RULE.id,
        severity=Severity.SERIOUS if grave else Severity.MODERATE,
        headline=(
            f"A worker will hold at least {size(need.whole)} of the {size(worker.memory_limit)} "
            f"that it may take, for `{main.prefix}`{made_at(main.file, main.line)}; from "
            f"{share(spill)} on Dask moves results to disk"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "memory_limit_bytes": worker.memory_limit,
            "process_bytes": need.process,
            "results_bytes": need.results,
            "pieces_bytes": need.pieces,
            "needed_bytes": enough,
            "spill_fraction": spill,
            "pause_fraction": cluster.pause,
        },
        cost_s=NOT_KNOWN[0],
        saving_s=NOT_KNOWN,
        fix=_fix(need, worker, workers, enough, cluster),
        where=Where(main.file, main.line, "", main.name, main.prefix),
        cause="memory",
    )


def _fix(need: _Need, worker: Worker, workers: int, enough: int, cluster: Cluster) -> Fix:
    said = {"results": size(need.results), "pieces": size(need.pieces), "now": size(need.process)}
    text = (_JOINED if need.joined else _TEXT).format(need=size(enough), **said)
    many, each = count(workers, "worker"), size(enough)
    if enough * workers > cluster.machine > 0:
        short = _SHORT.format(workers=many, need=each, machine=size(cluster.machine))
        return Fix(text + short)
    if need.joined:
        return Fix(text, _APART)
    if cluster.local:
        return Fix(text, local_cluster(workers, worker.threads, enough))
    known = {"threads": worker.threads, "plain": plain(enough)}
    return Fix(text, _ELSEWHERE.format(workers=many, need=each, **known))


CHECKS = (Check("memory-near-limit", find, memory_near_limit.RULE.limits),)
