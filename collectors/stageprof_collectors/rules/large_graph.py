"""Arrays and data frames in so many pieces that their number costs more than the work on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stageprof_collectors.account.exchange import squared
from stageprof_collectors.account.indexing import out_of_order
from stageprof_collectors.findings.chunking import LARGEST, Chunking
from stageprof_collectors.findings.crowd import MANY, Crowd, Kind
from stageprof_collectors.findings.finding import Finding, Where, severity
from stageprof_collectors.findings.larger import Pieces, chosen
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.unfused import unfused

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all chunked collections: the size of the first sets that of the others."""
    if len(recording.timeline.runs["run"]) < limits["tasks"]:
        return
    crowds = recording.crowds
    crowd = crowds.of(Kind.CHUNKS)
    if crowd is None or len(crowd.rows) < limits["tasks"]:
        return
    left = unfused(recording)
    if len(crowd.rows) - len(left.rows) + left.left < limits["tasks"]:
        return  # they are many because they are not fused
    # The way of shuffling, or the order of positions, is what is to be changed.
    if squared(recording, crowd.rows) or out_of_order(recording, crowd.rows):
        return
    overhead = Overhead(recording, crowd)
    if overhead.seconds < limits["share"] * recording.wall:
        return
    chunking = Chunking(recording, crowd)
    k = chunking.fewer(overhead, limits["piece_bytes"])
    if k > 1:
        yield _finding(recording, crowd, overhead, chunking, k)


def _finding(
    recording: Recording, crowd: Crowd, overhead: Overhead, chunking: Chunking, k: int
) -> Finding:
    saved, pieces, made = overhead.saving(k), chunking.pieces, chunking.made
    main, tasks, cost = crowd.main, len(crowd.rows), overhead.seconds
    if made.cut and not chosen(made):  # to put them together again takes the tasks that cut them
        saved = 0.0, saved[1]
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{tasks:,} tasks on {_named(pieces)}, {_most_of(recording, crowd)}"
            f"{made_at(main.file, main.line)}: what each costs beside its work is "
            f"{of_wall(cost, recording)}"
        ),
        stage=None,
        evidence={
            "tasks": tasks,
            **_sizes(pieces, k),
            "work_each_s": overhead.work_s,
            "overhead_each_s": overhead.each_s,
            "times_fewer": k,
        },
        cost_s=cost,
        saving_s=saved,
        fix=chunking.larger(overhead.each_s, k),
        where=Where(main.file, main.line, "", main.layer, main.prefix),
        cause=crowd.cause,
    )


def _named(pieces: Pieces) -> str:
    if pieces.nbytes:
        return f"{pieces.word} of {size(pieces.nbytes)}"
    return f"{pieces.word} of a collection"


def _sizes(pieces: Pieces, k: int) -> dict[str, float]:
    if not pieces.nbytes:
        return {}
    return {"piece_bytes": pieces.nbytes, "target_bytes": pieces.nbytes * k}


def _most_of(recording: Recording, crowd: Crowd) -> str:
    """Which tasks these are: of most of them the prefix, else of how many."""
    prefixes, main = recording.prefixes[crowd.rows], crowd.main.prefix
    mine = int((prefixes == main).sum())
    return f"{'most' if 2 * mine >= len(prefixes) else f'{mine:,}'} of `{main}`"


RULE = Rule(
    id="large-graph",
    stage=None,
    summary="The number of pieces of arrays or data frames costs more than a share of the run.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "tasks": Limit(MANY, "a task costs about a millisecond: fewer never cost a second"),
        "share": Limit(0.05, "of the wall time: with less, no other size of pieces is worth it"),
        "piece_bytes": Limit(LARGEST, "larger pieces leave no room for copies in common workers"),
    },
)
