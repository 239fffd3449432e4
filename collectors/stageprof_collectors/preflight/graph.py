"""The check of the graph's size: how many tasks, and what their number costs in each stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.advice import in_batches
from stageprof_collectors.findings.batch import TASKS_PER_THREAD, rounded
from stageprof_collectors.findings.finding import Finding, Fix, Where
from stageprof_collectors.findings.larger import Pieces, chosen, larger
from stageprof_collectors.findings.phrase import made_at, word
from stageprof_collectors.findings.quantity import seconds, size
from stageprof_collectors.findings.rule import Limits
from stageprof_collectors.findings.upstream import FEW, Upstream
from stageprof_collectors.preflight.check import Check, about, middle
from stageprof_collectors.preflight.fusing import unfused
from stageprof_collectors.preflight.plan import Layer, Plan
from stageprof_collectors.preflight.upstream import Sources
from stageprof_collectors.rules import large_graph
from stageprof_collectors.tables.site import Collection
from stageprof_runtime.handover import CLUSTER
from stageprof_runtime.made import prefix_of

#: Chunks and partitions whose bytes nobody knows may become this many times larger.
BLIND: Final = 10

_TEXT: Final = (
    "If these tasks are short, give each about {k:,} pieces of work instead of one. A task costs "
    "about {each} whatever it does; tasks that work for a second each do not mind."
)
_ROOM: Final = (
    " How large the partitions are is not told, so look whether your memory has room for larger "
    "ones."
)
_BAG: Final = """\
# better, where it is made: db.from_sequence(..., npartitions={parts}), or
# db.read_text(..., files_per_partition={k})
bag = bag.repartition(npartitions={parts})"""
_FRAMES: Final = (
    " `blocksize=` says it to `read_csv`, with `aggregate_files=True` to `read_parquet`; calls of "
    "`from_map` and `from_delayed` can be given {k:,} inputs each, and put together what they make "
    "of them."
)


def find(plan: Plan, limits: Limits) -> Iterator[Finding]:
    """One finding for each kind of collection that has many tasks."""
    if plan.scheduler == CLUSTER:  # positions in order is what is to be changed of these
        plan = replace(plan, layers=[layer for layer in plan.layers if not layer.out_of_order])
    sources = Sources(plan)
    kinds: Counter[Collection] = Counter()
    for layer in plan.layers:
        kinds[layer.collection] += layer.tasks
    fused = unfused(plan)  # they may be many because they are not
    kinds[Collection.FRAME] -= fused.tasks - fused.left
    for kind, tasks in (+kinds).items():
        main = _main(plan, kind, sources)
        k = _times(plan, main, limits)
        if tasks >= limits["tasks"] and k > 1:
            yield _finding(plan, tasks, main, _upstream(plan, main, sources), k)


def _main(plan: Plan, kind: Collection, sources: Sources) -> Layer:
    """Of the layers with most tasks the largest: its pieces set those of the others.

    Where bytes are not known it is what reads a data frame, for that sets the partitions; of others
    rather one that cuts nothing up; and one of a line that is known.
    """
    mine = [layer for layer in plan.layers if layer.collection == kind]
    sums = _by_prefix(mine)
    most = max(sums.values())
    return max(
        (x for x in mine if sums[x.prefix] * 2 >= most),
        key=lambda x: (x.nbytes, x.source, not sources.of(x.name).cut, x.tasks, bool(x.line)),
    )


def _times(plan: Plan, main: Layer, limits: Limits) -> int:
    """How many pieces should become one."""
    enough = _by_prefix(plan.layers)[main.prefix] / (TASKS_PER_THREAD * plan.threads)
    if main.piece_bytes > 0:
        room = limits["piece_bytes"] / _largest(plan, main)
    else:
        room = enough if _calls(main) else float(BLIND)
    return rounded(min(enough, room))


def _calls(layer: Layer) -> bool:
    """Whether its tasks are calls of the user's, which are no pieces of anything."""
    return layer.collection == Collection.CALLS and not layer.bag


def _largest(plan: Plan, main: Layer) -> int:
    """Bytes of the largest pieces that grow with those of a layer."""
    tasks = _by_prefix(plan.layers)
    return max(
        layer.piece_bytes
        for layer in plan.layers
        if layer.collection == main.collection and tasks[layer.prefix] * FEW >= tasks[main.prefix]
    )


def _by_prefix(layers: Iterable[Layer]) -> Counter[str]:
    """Tasks of all layers of each prefix: each `delayed` call makes a layer of its own."""
    sums: Counter[str] = Counter()
    for layer in layers:
        sums[layer.prefix] += layer.tasks
    return sums


def _upstream(plan: Plan, main: Layer, sources: Sources) -> Upstream:
    """The layer that makes the pieces of another.

    What a `rechunk` of the user's cuts up is made there.
    """
    source = sources.of(main.name)
    row = Row(main.name, main.prefix, main.file, main.line)
    if source.name != main.name:
        row = Row(source.name, prefix_of(source.name), *plan.line_of(source.name))
    return Upstream(row, source.cut if chosen(Upstream(row)) else 0)


def _finding(plan: Plan, tasks: int, main: Layer, made: Upstream, k: int) -> Finding:
    cost, saved = plan.rates.of_tasks(tasks), plan.rates.saving(tasks, 1.0 - 1.0 / k)
    of = f" on pieces of {size(main.piece_bytes)}" if main.piece_bytes > 0 else ""
    return Finding(
        rule=large_graph.RULE.id,
        severity=plan.rates.severity(saved),
        headline=(
            f"{tasks:,} tasks{of}, most of `{main.prefix}`{made_at(main.file, main.line)}: "
            f"{about(cost)} beside their work"
        ),
        stage=None,
        evidence={
            "tasks": tasks,
            **({"piece_bytes": main.piece_bytes} if main.piece_bytes > 0 else {}),
            "overhead_each_s": middle(plan.rates.task_s),
            "times_fewer": k,
            **_by_stage(plan, tasks),
            "predicted_from": plan.rates.source,
        },
        cost_s=middle(cost),
        saving_s=saved,
        fix=_fix(plan, main, made, k),
        where=Where(made.row.file, made.row.line, "", made.row.layer, made.row.prefix),
        cause=f"tasks:{main.collection}",
    )


def _by_stage(plan: Plan, tasks: int) -> dict[str, float | int | str]:
    return {f"{stage}_s": tasks * middle(each) for stage, each in plan.rates.each_s.items()}


def _fix(plan: Plan, main: Layer, made: Upstream, k: int) -> Fix:
    each = middle(plan.rates.task_s)
    if main.collection == Collection.CALLS:
        text = _TEXT.format(k=k, each=seconds(each))
        if main.bag:
            # A layer that exchanges them has tasks for that besides.
            parts = min(x.tasks for x in plan.layers if x.bag and x.tasks * FEW > main.tasks)
            return Fix(text + _ROOM, _BAG.format(parts=max(1, parts // k), k=k))
        return Fix(text, in_batches(word(main.prefix, "work"), k, main.calling))
    frames = main.collection == Collection.FRAME
    pieces = Pieces(main.tasks, max(0, main.piece_bytes), frames)
    found = larger(each, pieces, k, made)
    told = main.piece_bytes > 0 or found.code or not frames
    return found if told else replace(found, text=found.text + _FRAMES.format(k=k))


CHECKS = (Check("large-graph", find, large_graph.RULE.limits),)
