"""Fewer pieces of data than threads: some workers cannot take part in a training."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.spreading import EFFICIENCY, code, enough, rows_each, saving
from stageprof_collectors.findings.training import Training, Trainings, at, cause, what
from stageprof_collectors.replay.cost import cost_of
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What to do, whether it is known what that saves or not.
TEXT = (
    "A framework trains on the workers that hold pieces, and each piece is made by one thread. Cut "
    "the data into at least one piece for each thread and put them on all workers (repartition or "
    "rechunk alone leave the new pieces where the old one was). Better still, read it in as many "
    "pieces from the start."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each line that hands over data in too few pieces."""
    trainings = Trainings(recording)
    if not trainings:
        return
    few = [
        one
        for one in trainings.all
        if len(one.trainers)
        and one.given.column_pieces <= 1
        and one.given.pieces < limits["pieces"] * trainings.threads(one.call.start)
    ]
    few.sort(key=lambda one: (one.given.file, one.given.line, one.call.start))
    for _, some in groupby(few, key=lambda one: (one.given.file, one.given.line)):
        yield _finding(recording, trainings, list(some), limits)


def _finding(
    recording: Recording, trainings: Trainings, few: list[Training], limits: Limits
) -> Finding:
    given, start = few[0].given, few[0].call.start
    there, took_part = trainings.workers(start), trainings.trained(few[0])
    threads = trainings.threads(start)
    pieces = enough(given.pieces, int(limits["pieces"] * threads))
    rows = {row for one in few for row in one.trainers.tolist()}
    cost = cost_of(recording, runs=rows)
    saved = saving(recording, [trainings.spread(one) for one in few], limits["efficiency"])
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{what(given)} has {count(given.pieces, 'piece')} for {count(threads, 'thread')}: "
            f"{given.framework} trained on {len(took_part)} of {count(len(there), 'worker')} "
            f"({at(few[0].call)}), {seconds(cost)} of {seconds(recording.wall)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "pieces": given.pieces,
            "threads": threads,
            "workers": len(there),
            "workers_training": len(took_part),
            "pieces_advised": pieces,
            "rows_each": rows_each(given, pieces),
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(TEXT, code(given, pieces)),
        where=Where(given.file, given.line, given.variable, given.name),
        cause=cause(given),
    )


RULE = Rule(
    id="pieces-per-thread",
    stage=Stage.EXECUTION,
    summary="Data goes into a training in fewer pieces than there are threads.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "pieces": Limit(1, "pieces for each thread: with less than one, threads have nothing"),
        "efficiency": EFFICIENCY,
    },
)
