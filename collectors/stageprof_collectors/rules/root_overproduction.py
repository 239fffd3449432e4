"""Workers that were given all first tasks at once, and whose memory filled with their results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import share, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.standing import series
from stageprof_collectors.tables.crew import Crew
from stageprof_collectors.tables.wanted import wanted
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What Dask is delivered with: a tenth more tasks than threads, so that none has to wait.
USUAL: Final = 1.1

_TEXT: Final = (
    "Leave `distributed.scheduler.worker-saturation` at its default, {usual}: the scheduler then "
    "keeps tasks that need nothing until a thread is free for them, so that results are used "
    "before more are made. Set it where the scheduler starts (the code below, before the cluster "
    "is made; with `dask scheduler`, in the configuration file or as "
    "`DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION={usual}`)."
)
_CODE: Final = """\
import dask

dask.config.set({{"distributed.scheduler.worker-saturation": {usual}}})"""


class Built(NamedTuple):
    """Results of first tasks that lay in memory at once, at most; and of which layer most are."""

    nbytes: int
    number: int
    row: Row


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for the scheduler: it hands out all tasks."""
    bounds = series(recording, "worker.saturation").values()
    if not any((values == 0).any() for _, values in bounds):
        return
    built = _built(recording)
    limit = sum(thresholds.limit for thresholds in recording.memory.limits.values())
    threads = Crew(recording).threads
    if built is None or built.nbytes < limits["memory"] * limit or limit <= 0:
        return
    if built.number < limits["per_thread"] * threads:
        return
    trouble = shortage.both(recording)
    saved = shortage.saving(recording, trouble, spill=True) if trouble else (0.0, 0.0)
    cost = shortage.spill_cost(recording) + shortage.pause_cost(recording)
    row, wall = built.row, recording.wall
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, wall),
        headline=(
            f"Up to {built.number:,} results of `{row.prefix}`{made_at(row.file, row.line)} "
            f"({size(built.nbytes)}) wait in memory to be used, for queuing is off: "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.SCHEDULING,
        evidence={
            "results": built.number,
            "results_bytes": built.nbytes,
            "threads": threads,
            "share_of_memory": share(built.nbytes / limit),
            "memory_limit_bytes": int(limit),
            "spilling_s": shortage.seconds_of(recording.incidents.spilling),
            "paused_s": shortage.seconds_of(shortage.paused(recording)),
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_TEXT.format(usual=USUAL), _CODE.format(usual=USUAL)),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=shortage.CAUSE,
    )


def _built(recording: Recording) -> Built | None:
    """The most results of first tasks that were there before what needed them had ended."""
    runs, needs = recording.timeline.runs, recording.timeline.depends
    user = needs.user
    used = np.zeros(len(runs["run"]), np.int64)
    np.maximum.at(used, needs.on, runs["stop"][user])
    first = (np.diff(needs.first) == 0) & (used > 0) & (runs["run"] < LOCAL)
    first[wanted(recording)] = False  # what a client holds would be there with queuing, too
    rows = np.flatnonzero(first)
    if not len(rows):
        return None
    held, number = _most(runs["stop"][rows], used[rows], runs["nbytes"][rows])
    groups = recording.groups
    of = groups.of_run[rows]
    main = int(np.argmax(np.bincount(of, weights=runs["nbytes"][rows])))
    return Built(held, number, groups.rows[main])


def _most(made: Ints, used: Ints, nbytes: Ints) -> tuple[int, int]:
    """Bytes, and how many, at the instant with most bytes."""
    t = np.concatenate([made, used])
    change = np.concatenate([nbytes, -nbytes])
    one = np.concatenate([np.ones_like(made), -np.ones_like(used)])
    order = np.lexsort((change, t))
    held = np.cumsum(change[order])
    at = int(np.argmax(held))
    return int(held[at]), int(np.cumsum(one[order])[at])


RULE = Rule(
    id="root-overproduction",
    stage=Stage.SCHEDULING,
    summary="Queuing is off, and memory fills with results that are not used yet.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "memory": Limit(0.3, "of the workers' memory: less does not bring them near a threshold"),
        "per_thread": Limit(3.0, "results for each thread: with queuing there are about two"),
    },
)
