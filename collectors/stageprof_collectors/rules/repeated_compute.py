"""The same keys computed again by a later compute: nobody had kept the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.calls import Calls
from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.timeline import LOCAL
from stageprof_collectors.findings.crowd import is_piece
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import at, made_at, of_wall
from stageprof_collectors.findings.quantity import count, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.gone import without, worked_s
from stageprof_collectors.tables.crew import Crew

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Ask all questions at once: `dask.compute(a, b)` computes what they share one time. If later "
    "questions depend on earlier answers, persist what they share{bytes}, provided that "
    "it fits into the workers' memory."
)
_CODE: Final = """\
import dask

# first and second: what you call .compute() on{lines}
first, second = dask.compute(first, second)"""
_PERSIST: Final = """\
data = data.persist()  # what was made{made}; once, before the loop"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for all that was computed again."""
    if len(recording.timeline.graphs) < 2:
        return
    calls = Calls(recording)
    rows = calls.repeats
    if not len(rows) or worked_s(recording, rows) < limits["share"] * recording.wall:
        return
    yield _finding(recording, calls, rows)


def _finding(recording: Recording, calls: Calls, rows: Ints) -> Finding:
    saved = _saving(recording, calls, rows)
    cost = cost_of(recording, runs=rows.tolist())
    row = _main(recording, rows)
    owner = recording.replay.owner[rows]
    lines = sorted({calls.line(int(g)) for g in np.unique(owner) if g >= 0})
    places = ", ".join(filter(None, (at(file, line) for file, line in lines[:3])))
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(len(rows), 'task')}, most of `{row.prefix}`{made_at(row.file, row.line)}, "
            f"computed again what an earlier compute had made"
            f"{f' (by {places})' if places else ''}: {of_wall(cost, recording)}"
        ),
        stage=None,
        evidence={
            "tasks_again": len(rows),
            "computes": len(np.unique(owner)),
            "work_again_s": worked_s(recording, rows),
            **({"kept_bytes": kept} if (kept := _kept(recording, rows, row)) else {}),
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(recording, rows, row, lines),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=f"again:{row.layer}",
    )


def _saving(recording: Recording, calls: Calls, rows: Ints) -> tuple[float, float]:
    """With the repeated runs gone; at most, with all questions asked at once besides."""
    gone = without(recording, rows)
    owners = np.unique(recording.replay.owner[rows]).tolist()
    asked = [g for g in calls.blocking if g >= 0 and g <= max(owners)]
    at_once = replace(gone, together=(tuple(asked),), workers=_workers(recording, rows))
    low, high = recording.replay.saving(gone), recording.replay.saving(at_once)
    return low[0], max(low[1], high[1])


def _workers(recording: Recording, rows: Ints) -> int | None:
    local = (recording.timeline.runs["run"][rows] >= LOCAL).all()
    return None if local else max(1, len(Crew(recording).fullest))


def _main(recording: Recording, rows: Ints) -> Row:
    """The layer that took most of what was done again."""
    groups, runs = recording.groups, recording.timeline.runs
    took = (runs["stop"] - runs["start"])[rows].astype(float)
    return groups.rows[int(np.argmax(np.bincount(groups.of_run[rows], weights=took)))]


def _kept(recording: Recording, rows: Ints, row: Row) -> int:
    """Bytes of the layer's results, each key once."""
    groups, runs = recording.groups, recording.timeline.runs
    mine = rows[groups.of_run[rows] == groups.rows.index(row)]
    keys = recording.store.keys(runs["key"][mine])
    sizes = dict(zip(keys, runs["nbytes"][mine].tolist(), strict=True))
    return int(sum(sizes.values()))


def _fix(recording: Recording, rows: Ints, row: Row, lines: list[tuple[str, int]]) -> Fix:
    kept = _kept(recording, rows, row)  # local schedulers tell of no bytes
    text = _TEXT.format(bytes=f" ({size(kept)} here)" if kept else "")
    again = len(lines) < 2  # one line again and again: there is no second to join it with
    if again and _pieces(recording, rows):
        return Fix(text, _PERSIST.format(made=made_at(row.file, row.line)))
    places = " and ".join(filter(None, (at(file, line) for file, line in lines[:2])))
    return Fix(text, _CODE.format(lines=f" (again at {places})" if places else ""))


def _pieces(recording: Recording, rows: Ints) -> bool:
    """Whether these are pieces of a collection; by their keys where no type was told."""
    name = recording.store.strings[int(recording.timeline.runs["type"][rows[0]])]
    return is_piece(name) if name else bool(recording.layered.chunked[rows[0]])


RULE = Rule(
    id="repeated-compute",
    stage=None,
    summary="The same keys are computed again by a later compute.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.02, "of the wall time in work done again: less is not worth a change"),
    },
)
