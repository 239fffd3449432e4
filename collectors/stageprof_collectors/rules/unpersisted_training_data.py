"""Data is made again for each training, because nobody keeps it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.sizing import ROOM, kept_in_memory
from stageprof_collectors.findings.spreading import names_of
from stageprof_collectors.findings.training import Given, Trainings, again, at, cause, what, without
from stageprof_collectors.replay.cost import cost_of
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT = (
    "Keep the data in the workers' memory: persist it once before the first training, and wait "
    "until it is there. Data and labels are persisted in one call, so that what both come from is "
    "read once."
)
_READY = (
    "The data is persisted, but training began before it was there. That loses no time by itself; "
    "wait for it first if you want to know what the training alone takes."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each line that hands over data which is made again there."""
    trainings = Trainings(recording)
    if not trainings:
        return
    given = sorted(trainings.given, key=lambda call: (call.file, call.line, call.start))
    for _, calls in groupby(given, key=lambda call: (call.file, call.line)):
        group = list(calls)
        if any(call.held == 1 and call.pending for call in group):
            yield from _early(recording, trainings, group)
        loose = [call for call in group if not call.held]
        if loose and _fits(recording, trainings, loose[0], limits["memory_share"]):
            yield from _repeated(recording, trainings, loose, limits["cost_share"])


def _repeated(
    recording: Recording, trainings: Trainings, calls: list[Given], least: float
) -> Iterator[Finding]:
    rows, first = again(trainings, calls), calls[0]
    cost = cost_of(recording, runs=set(rows.tolist()))
    if cost < least * recording.wall or not len(rows):
        return
    made = 1 + max(Counter(trainings.keys[row] for row in rows.tolist()).values())
    saving = recording.replay.saving(without(recording, rows))
    busy = float((trainings.runs["stop"] - trainings.runs["start"])[rows].sum() / 1e9)
    yield Finding(
        rule=RULE.id,
        severity=severity(saving, recording.wall),
        headline=(
            f"{what(first)} is not persisted: its pieces were made {made} times for "
            f"{first.framework} ({at(first)}): {seconds(cost)} of {seconds(recording.wall)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "calls": len(calls),
            "times_made": made,
            "pieces": first.pieces,
            "tasks_again": len(rows),
            "again_s": busy,
        },
        cost_s=cost,
        saving_s=saving,
        fix=Fix(_TEXT, code(first)),
        where=Where(first.file, first.line, first.variable, first.name),
        cause=cause(first),
    )


def code(given: Given) -> str:
    """Persists data and labels, to be put before the first training."""
    names = names_of(given)
    if len(names) == 1:
        (one,) = names
        return f"from distributed import wait\n\n{one} = {one}.persist()\nwait({one})"
    both = ", ".join(names)
    return (
        "import dask\nfrom distributed import wait\n\n"
        f"{both} = dask.persist({both})\nwait([{both}])"
    )


def _early(recording: Recording, trainings: Trainings, calls: list[Given]) -> Iterator[Finding]:
    """Training began before its data was there: a note, for frameworks wait themselves."""
    call = next(call for call in calls if call.held == 1 and call.pending)
    runs = trainings.runs
    late = trainings.making(call.name)
    late = late[(runs["stop"][late] > call.start) & (runs["start"][late] < call.stop)]
    cost = cost_of(recording, runs=set(late.tolist()))
    if not cost:
        return
    yield Finding(
        rule=RULE.id,
        severity=severity((0.0, 0.0), recording.wall),
        headline=(
            f"{call.framework} was called ({at(call)}) when {call.pending} pieces of "
            f"{what(call)} were not ready: {seconds(cost)} of it is making data, not training"
        ),
        stage=Stage.EXECUTION,
        evidence={"pieces": call.pieces, "pending": call.pending},
        cost_s=cost,
        saving_s=(0.0, 0.0),
        fix=Fix(_READY, f"from distributed import wait\n\nwait([{', '.join(names_of(call))}])"),
        where=Where(call.file, call.line, call.variable, call.name),
    )


def _fits(recording: Recording, trainings: Trainings, given: Given, share: float) -> bool:
    """Whether the data has room in the workers' memory; yes where that is not known."""
    rows = trainings.making(given.name)
    sizes = {trainings.keys[row]: int(trainings.runs["nbytes"][row]) for row in rows.tolist()}
    nbytes = given.nbytes if given.nbytes > 0 else sum(sizes.values())
    return kept_in_memory(recording, nbytes, share)


RULE = Rule(
    id="unpersisted-training-data",
    stage=Stage.EXECUTION,
    summary="Training reads its input again each time, or starts before it is there.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "cost_share": Limit(0.01, "less of the wall time than this is not worth a line"),
        "memory_share": Limit(
            ROOM, "workers begin to spill at 60 % of their memory: what does not fit is no gain"
        ),
    },
)
