"""An array that is cut across its columns goes into a training."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where, severity
from stageprof_collectors.findings.quantity import seconds, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.spreading import DATA
from stageprof_collectors.findings.training import (
    Given,
    Training,
    Trainings,
    again,
    at,
    cause,
    what,
    without,
)
from stageprof_collectors.replay.cost import cost_of
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Calls that take such an array and look at the first piece of its columns only.
BLIND: Final = "dask_ml.wrappers.Incremental"

_TEXT = (
    "Frameworks train on rows: every piece has to hold all columns of its rows. Put the columns "
    "together once, before the first training, and keep the result in memory."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each line: columns that were not together, or that are put together each time."""
    trainings = Trainings(recording)
    if not trainings:
        return
    given = sorted(trainings.all, key=lambda one: (one.given.file, one.given.line))
    for _, some in groupby(given, key=lambda one: (one.given.file, one.given.line)):
        group = list(some)
        split = [one for one in group if one.given.column_pieces > 1]
        if split:
            yield _split(recording, split[0])
    merged = [call for call in trainings.given if call.merged > 1 and call.held == 1]
    merged.sort(key=lambda call: (call.file, call.line))
    for _, calls in groupby(merged, key=lambda call: (call.file, call.line)):
        yield from _merged(recording, trainings, list(calls), limits["cost_share"])


def _split(recording: Recording, training: Training) -> Finding:
    """The framework refused the array, or trained on a part of its columns.

    Serious whatever it costs: there is no model, or it is not the one that was wanted.
    """
    given = training.given
    cost = _within(recording, training.call)
    return Finding(
        rule=RULE.id,
        severity=Severity.SERIOUS,
        headline=(
            f"{what(given)}, {_shape(given)}, is cut into {given.column_pieces} pieces across its "
            f"columns: {_effect(training)} ({at(given)}), after {seconds(cost)}"
        ),
        stage=Stage.EXECUTION,
        evidence=_evidence(given) | {"column_pieces": given.column_pieces},
        cost_s=cost,
        saving_s=(0.0, 0.0),
        fix=fix(given),
        where=Where(given.file, given.line, given.variable, given.name),
        cause=cause(given),
    )


def _effect(training: Training) -> str:
    given = training.given
    if training.call.failed:
        return f"{given.framework} did not train on it"
    if given.call.startswith(BLIND):
        return f"{given.framework} saw only the first of them"
    return f"{given.framework} trains on rows"


def _merged(
    recording: Recording, trainings: Trainings, calls: list[Given], least: float
) -> Iterator[Finding]:
    """The columns of data in memory are put together for each training anew."""
    rows, first = again(trainings, calls), calls[0]
    cost = cost_of(recording, runs=set(rows.tolist()))
    if cost < least * recording.wall or not len(rows):
        return
    saving = recording.replay.saving(without(recording, rows))
    yield Finding(
        rule=RULE.id,
        severity=severity(saving, recording.wall),
        headline=(
            f"The columns of {what(first)}, {_shape(first)}, are kept in {first.merged} pieces and "
            f"put together for each of {len(calls)} trainings ({at(first)}): "
            f"{seconds(cost)} of {seconds(recording.wall)}"
        ),
        stage=Stage.EXECUTION,
        evidence=_evidence(first) | {"column_pieces": first.merged, "tasks_again": len(rows)},
        cost_s=cost,
        saving_s=saving,
        fix=fix(first),
        where=Where(first.file, first.line, first.variable, first.name),
        cause=cause(first),
    )


def fix(given: Given) -> Fix:
    """What to do with data whose columns are in pieces."""
    return Fix(_TEXT, code(given))


def code(given: Given) -> str:
    """Puts the columns together once; pieces of rows stay as they are."""
    name = given.variable or DATA
    return (
        "from distributed import wait\n\n"
        f"{name} = {name}.rechunk({{1: -1}}).persist(){_numbers(given)}\nwait({name})"
    )


def _numbers(given: Given) -> str:
    if given.rows < 0 or given.nbytes < 0:
        return ""
    rows = -(-given.rows // given.pieces)
    each = size(given.nbytes / given.pieces)
    return f"  # {given.pieces} pieces of {rows:,} rows x {given.width} columns, {each} each"


def _shape(given: Given) -> str:
    if given.rows < 0:
        return f"an array of {given.width} columns"
    return f"an array of {given.rows:,} rows x {given.width} columns"


def _evidence(given: Given) -> dict[str, float | int | str]:
    known = {"rows": given.rows, "columns": given.width, "data_bytes": given.nbytes}
    return {"row_pieces": given.pieces, **{n: v for n, v in known.items() if v >= 0}}


def _within(recording: Recording, call: Given) -> float:
    """Seconds of the region within a call."""
    region = recording.timeline.region
    return max(0, min(call.stop, region.stop) - max(call.start, region.start)) / 1e9


RULE = Rule(
    id="column-chunks-for-training",
    stage=Stage.EXECUTION,
    summary="An array that is cut across its columns goes into a training.",
    find=find,
    ground=Ground.RECORDED,
    limits={"cost_share": Limit(0.01, "less of the wall time than this is not worth a line")},
)
