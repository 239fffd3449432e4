"""A result so large that bringing it to the client takes a good part of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.gone import without
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.wanted import largest, wanted
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_STEPS: Final = frozenset(STEP[s] for s in ("result.gather", "result.load", "result.dump"))
_LOAD: Final = STEP["result.load"]
#: A task that puts pieces together makes about as many bytes as it was given.
_ALIKE: Final = 0.8, 1.25

_TEXT: Final = (
    "Bring less to the client. If you only look at a number, a mean, a few rows: compute that on "
    "the workers. If you want to keep the data: write them from the workers, each its own part. If "
    "another computation needs them: persist, and leave them where they are."
)
_ARRAY: Final = """\
answer = data.mean().compute()  # whatever you do with the array, before .compute()
data.to_zarr("result.zarr")  # or write it from the workers"""
_FRAME: Final = """\
answer = data.describe().compute()  # whatever you do with the frame, before .compute()
data.to_parquet("result/")  # or write it from the workers"""
_CALLS: Final = """\
import dask

answer = dask.delayed(len)(data).compute()  # whatever you do with it, in a task of its own"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for all results that were fetched."""
    cost = _way_s(recording)
    joins = _joins(recording, limits["bytes"])
    cost += cost_of(recording, runs=joins.tolist()) if len(joins) else 0.0
    if cost < limits["share"] * recording.wall:
        return
    whole = int(recording.timeline.runs["nbytes"][wanted(recording)].sum())
    fetched = min(_fetched(recording), whole)  # of nested objects each level is counted
    if fetched >= max(limits["bytes"], limits["each"] * _calls(recording)):
        yield _finding(recording, joins, fetched, min(cost, recording.wall))


def _way_s(recording: Recording) -> float:
    """Seconds of the blocking account in which results are on their way to the client."""
    brings = _bringing(recording)
    return sum(step.stop - step.start for step in recording.path_steps if brings(step)) / 1e9


def _bringing(recording: Recording) -> Callable[[Step], bool]:
    """Whether a piece of the path is a result's way to the client, and not to a task that asked."""
    runs, rows = recording.timeline.runs, recording.replay.launching
    rows = rows[np.argsort(runs["start"][rows], kind="stable")]
    starts, stops = runs["start"][rows], np.maximum.accumulate(runs["stop"][rows])

    def brings(step: Step) -> bool:
        if step.what.step not in _STEPS:
            return False
        begun = int(np.searchsorted(starts, step.start, side="right"))
        return not begun or bool(stops[begun - 1] <= step.start)

    return brings


def _fetched(recording: Recording) -> int:
    """Bytes of results that the region's client unpickled."""
    spans, place = recording.timeline.spans, recording.timeline.region.place
    mine = (spans["step"] == _LOAD) & (spans["place"] == place)
    return int(np.maximum(spans["nbytes"][mine], 0).sum())


def _calls(recording: Recording) -> int:
    """How many calls of the region's client fetched."""
    table = recording.store.table("block")
    mine = (table["gather"] > 0) & (table["place"] == recording.timeline.region.place)
    return int(np.count_nonzero(mine))


def _joins(recording: Recording, least: float) -> Ints:
    """Runs that put large pieces together for the client: what they needed is what they made."""
    runs, needs = recording.timeline.runs, recording.timeline.depends
    found = []
    for row in wanted(recording).tolist():
        made = int(runs["nbytes"][row])
        on = needs.on[needs.first[row] : needs.first[row + 1]]
        if made >= least and len(on) > 1:
            given = float(runs["nbytes"][on].sum())
            if _ALIKE[0] * made <= given <= _ALIKE[1] * made:
                found.append(row)
    return np.array(found, np.int64)


def _finding(recording: Recording, joins: Ints, fetched: int, cost: float) -> Finding:
    saved = _saving(recording, joins)
    row, kind = largest(recording)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"The result of `{row.prefix}`{made_at(row.file, row.line)}, {size(fetched)}, is "
            f"brought to the client: {of_wall(cost, recording)}"
        ),
        stage=Stage.COMMUNICATION,
        evidence={
            "fetched_bytes": fetched,
            "gather_s": _way_s(recording),
            "put_together_s": cost_of(recording, runs=joins.tolist()) if len(joins) else 0.0,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_TEXT, _code(kind)),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=f"result:{row.layer}",
        # That threads are idle while the pieces are put together is a part of it.
        also=frozenset(f"few tasks:{name}" for name in _layers(recording, joins)),
    )


def _layers(recording: Recording, rows: Ints) -> set[str]:
    groups = recording.groups
    return {groups.rows[i].layer for i in np.unique(groups.of_run[rows]).tolist()}


def _saving(recording: Recording, joins: Ints) -> tuple[float, float]:
    """At least the way to the client, at most what puts the pieces together there as well."""
    brings = _bringing(recording)

    def stays(step: Step) -> float:
        return 1.0 - brings(step)

    gone = without(recording, joins)
    all_ = Change(gone.compute, gone.lead, gone.fetch, gone.lag, gone.begin, serial=stays)
    low, high = (recording.replay.saving(change) for change in (Change(serial=stays), all_))
    return min(low[0], high[0]), max(low[1], high[1])


def _code(kind: str) -> str:
    if "ndarray" in kind:
        return _ARRAY
    frame = any(name in kind.lower() for name in ("dataframe", "series"))
    return _FRAME if frame else _CALLS


RULE = Rule(
    id="large-result",
    stage=Stage.COMMUNICATION,
    summary="Bringing the result to the client takes more than a share of the run.",
    find=find,
    ground=Ground.REWRITTEN,
    limits={
        "share": Limit(0.1, "of the wall time: results have to come somehow"),
        "bytes": Limit(10e6, "fetched: with less it is not their size that takes the time"),
        "each": Limit(1e6, "bytes for each call that fetched: with less it is the calls"),
    },
)
