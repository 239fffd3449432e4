"""Workers that joined after the data was in place hold none of it, and do not train."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limits, Rule
from stageprof_collectors.findings.spreading import EFFICIENCY, code, enough, saving
from stageprof_collectors.findings.training import Training, Trainings, at, cause, what
from stageprof_collectors.replay.cost import cost_of
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT = (
    "Put the pieces on all workers after the cluster has grown, and before training. "
    "client.rebalance() moves nothing until a worker uses 30 % of its memory, and repartition or "
    "rechunk leave new pieces where the old ones were: the code tells each piece its worker. "
    "Where you can, wait for all workers before you persist, and none of this is needed."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each line that trained while workers held none of the data."""
    trainings = Trainings(recording)
    if not trainings:
        return
    idle = [one for one in trainings.all if len(one.trainers) and _empty(trainings, one)]
    idle.sort(key=lambda one: (one.given.file, one.given.line, one.call.start))
    for _, some in groupby(idle, key=lambda one: (one.given.file, one.given.line)):
        yield _finding(recording, trainings, list(some), limits)


def _empty(trainings: Trainings, training: Training) -> set[str]:
    """Workers that would have got pieces, for there are enough, had they been there in time."""
    there = trainings.workers(training.call.start)
    if training.given.pieces < sum(threads for threads, _ in there.values()):
        return set()
    placed = trainings.placed(training)
    late = {address for address, (_, seen) in there.items() if seen > placed}
    return late - trainings.trained(training)


def _finding(
    recording: Recording, trainings: Trainings, idle: list[Training], limits: Limits
) -> Finding:
    given, empty = idle[0].given, _empty(trainings, idle[0])
    there = trainings.workers(idle[0].call.start)
    threads = sum(n for n, _ in there.values())
    rows = {row for one in idle for row in one.trainers.tolist()}
    cost = cost_of(recording, runs=rows)
    saved = saving(recording, [trainings.spread(one) for one in idle], limits["efficiency"])
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{len(empty)} of {count(len(there), 'worker')} joined after the pieces of "
            f"{what(given)} were placed and hold none: {given.framework} trained without "
            f"{'it' if len(empty) == 1 else 'them'} ({at(idle[0].call)}), "
            f"{seconds(cost)} of {seconds(recording.wall)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "workers": len(there),
            "workers_empty": len(empty),
            "pieces": given.pieces,
            "threads": threads,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_TEXT, code(given, enough(given.pieces, threads))),
        where=Where(given.file, given.line, given.variable, given.name),
        cause=cause(given),
    )


RULE = Rule(
    id="new-workers-empty",
    stage=Stage.EXECUTION,
    summary="Workers that joined hold no pieces of the data, so they take no part in a training.",
    find=find,
    ground=Ground.SPREAD,
    limits={"efficiency": EFFICIENCY},
)
