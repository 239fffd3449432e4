"""An array is indexed by positions out of order: each piece is put together from all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.indexing import TIMES, Indexing
from stageprof_collectors.findings.crowd import MANY, Crowd, Kind
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.tables.traffic import Traffic

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Index with positions in order (the code below): then each piece of the result is made of one "
    "or two pieces of the array, by about {in_order:,} tasks instead of {now:,}, whose number is "
    "the product of both. A mean, a product or a sum does not depend on the order of what is "
    "chosen; where it matters, put the result back into it once it is in memory."
)
_CODE: Final = """\
import numpy as np

order = np.argsort(positions)  # positions: what you index with
positions = np.asarray(positions)[order]
# where the order matters, at the end, along the same axis: result[np.argsort(order)]"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all that was indexed so, at the line with most of it."""
    if len(recording.timeline.runs["run"]) < limits["tasks"]:
        return
    found = recording.indexing
    if found is None or found.times < limits["times"] or len(found.rows) < limits["tasks"]:
        return
    row = recording.groups.most(found.splits.tolist())
    lines = frozenset({f"{row.file}:{row.line}"} if row.file else ())
    crowd = Crowd(Kind.CHUNKS, found.rows, row, lines)
    overhead = Overhead(recording, crowd)
    if overhead.seconds >= limits["share"] * recording.wall:
        yield _finding(recording, found, crowd, overhead)


def _finding(recording: Recording, found: Indexing, crowd: Crowd, overhead: Overhead) -> Finding:
    main = crowd.main
    times, now = found.times, len(found.rows)
    saved = recording.replay.saving(overhead.merged(times))
    fetched = recording.replay.saving(overhead.merged(times, fetch=1 / times))
    stream = Traffic(recording).main
    moved = stream is not None and bool(np.isin(stream.users, found.rows).any())
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{headline(now, found.in_order, main.file, main.line)}; what they cost beside their "
            f"work is {of_wall(overhead.seconds, recording)}"
        ),
        stage=None,
        evidence={
            "tasks": now,
            "tasks_in_order": found.in_order,
            "pieces_of_array": len(found.sources),
            "pieces_of_result": len(found.joins),
            "overhead_each_s": overhead.each_s,
        },
        cost_s=overhead.seconds,
        saving_s=(saved[0], max(saved[1], fetched[1])),
        fix=fix(now, found.in_order),
        where=Where(main.file, main.line, "", main.layer, ""),
        cause=crowd.cause,
        also=frozenset({stream.cause} if stream and moved else ()),
    )


def headline(now: int, in_order: int, file: str, line: int) -> str:
    """What is done where, by how many tasks."""
    return (
        f"An array is indexed by positions out of order{made_at(file, line)}: "
        f"{count(now, 'task')} where about {in_order:,} would do with the positions in order"
    )


def fix(now: int, in_order: int) -> Fix:
    """What to do about it."""
    return Fix(_TEXT.format(in_order=in_order, now=now), _CODE)


RULE = Rule(
    id="unsorted-index",
    stage=None,
    summary="An array is indexed by positions out of order, by far more tasks than in order.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "tasks": Limit(MANY, "a task costs about a millisecond: fewer never cost a second"),
        "times": Limit(TIMES, "as many tasks as in order: with less, little is gained"),
        "share": Limit(0.05, "of the wall time: with less, no other order is worth it"),
    },
)
