"""Arrays and data frames in so many pieces that their number costs more than the work on them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stageprof_collectors.account.exchange import squared
from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.batch import batch, rounded
from stageprof_collectors.findings.crowd import MANY, Crowd, Crowds, Kind, is_piece
from stageprof_collectors.findings.finding import Finding, Where, severity
from stageprof_collectors.findings.larger import READS, Pieces, chosen, larger
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.upstream import FEW, Upstream, source, upstream
from stageprof_collectors.tables.crew import Crew

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Pieces of unknown size should grow no more: their tasks need several times as much memory.
_BLIND: Final = 10
#: So many pieces that are cut up are small themselves, and what cuts them (xarray's `groupby` does)
#: may cut larger ones into fewer.
_CUT: Final = 100
#: Of a thread's memory, where there is too little: what is made of a piece takes several times as
#: much, and results stay.
_ROOM: Final = 0.05
#: Blocks with a margin of their neighbours' (`map_overlap`), fused with others or not; and how
#: margins are cut: so many slices of each block, however large it is.
_OVERLAP: Final = re.compile(r"(.*-)?overlap(-.*)?")
_SLICE: Final = "getitem"
#: The name of a block of a text file, by where it begins.
_BLOCK: Final = re.compile(r"read-block-(\d{1,15})")


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all chunked collections: the size of the first sets that of the others."""
    if len(recording.timeline.runs["run"]) < limits["tasks"]:
        return
    crowds = recording.crowds
    crowd = crowds.of(Kind.CHUNKS)
    if crowd is None or len(crowd.rows) < limits["tasks"]:
        return
    if squared(recording, crowd.rows):  # the way of shuffling is what is to be changed
        return
    overhead = Overhead(recording, crowd)
    if overhead.seconds < limits["share"] * recording.wall:
        return
    pieces, layer = _pieces(recording, crowds, crowd)
    most: float = _BLIND
    if pieces.nbytes:
        most = min(limits["piece_bytes"], _room(recording)) / pieces.largest
    k = rounded(batch(overhead, pieces.number, most))
    if k > 1:
        yield _finding(recording, crowd, overhead, pieces, k, _made(recording, crowd, layer))


def _room(recording: Recording) -> float:
    """Bytes that a piece may have: where memory was short a part of what a thread has."""
    sizes = [each.limit for each in recording.memory.limits.values() if each.limit]
    crew = Crew(recording)
    if not sizes or not crew.threads or not shortage.both(recording):
        return math.inf
    return _ROOM * min(sizes) * len(crew.fullest) / crew.threads


def _pieces(recording: Recording, crowds: Crowds, crowd: Crowd) -> tuple[Pieces, Row]:
    """The pieces that matter, and the layer that they are of."""
    runs, names = recording.timeline.runs, recording.store.strings
    types = np.array([is_piece(name) for name in names])
    rows: Ints = crowd.rows[types[runs["type"][crowd.rows]]]
    rows = _blocks(recording, rows if len(rows) else crowd.rows)
    layers, nbytes = crowds.groups.of_run[rows], runs["nbytes"][rows]
    layer = _most(layers, nbytes)
    mine = layers == layer
    kind = names[int(runs["type"][rows[mine][0]])]
    frames = "ndarray" not in kind if kind else None
    number = int(mine.sum())
    usual = float(np.median(nbytes[mine]))
    largest = max(usual, _largest(layers, nbytes, number))
    graphs = recording.timeline.graph_rows[rows[mine]]
    pieces = Pieces(int(np.bincount(graphs + 1).max()), usual, frames, largest)
    return pieces, crowds.groups.rows[layer]


def _blocks(recording: Recording, rows: Ints) -> Ints:
    """These runs without those that cut the margins of overlapping blocks."""
    prefixes = recording.prefixes[rows]
    blocks = rows[prefixes != _SLICE]
    return blocks if len(blocks) and _overlapping(prefixes) else rows


def _overlapping(prefixes: NDArray[np.object_]) -> bool:
    return any(map(_OVERLAP.fullmatch, set(prefixes.tolist())))


def _most(layers: Ints, nbytes: Ints) -> int:
    """The layer with most bytes; with most pieces where nobody told how large they are."""
    sums, number = np.bincount(layers, weights=nbytes), np.bincount(layers)
    sums[number * 2 < number.max()] = 0  # few large pieces that are cut up are not the problem
    return int(np.argmax(sums if sums.any() else number))


def _largest(layers: Ints, nbytes: Ints, number: int) -> float:
    """The usual size in the layer with the largest pieces that grow with `number` others.

    What is left of a reduction is tiny, and larger only if what was reduced is larger too.
    """
    usual = pd.Series(nbytes).groupby(layers).agg(["size", "median"])
    return float(usual["median"][usual["size"] * FEW >= number].max())


def _finding(
    recording: Recording, crowd: Crowd, overhead: Overhead, pieces: Pieces, k: int, made: Upstream
) -> Finding:
    saved = overhead.saving(k)
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
        fix=larger(
            overhead.each_s,
            pieces,
            k,
            made,
            block=_block(recording),
            opened=source(recording, made.row) if made.cut >= _CUT else None,
        ),
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


def _made(recording: Recording, crowd: Crowd, layer: Row) -> Upstream:
    """The layer that sets the number of a layer's pieces: one that reads, if there is one."""
    groups = recording.groups
    of_run, number = np.unique(groups.of_run[crowd.rows], return_counts=True)
    rows = [groups.rows[i] for i in of_run[np.argsort(-number, kind="stable")].tolist()]
    reads = next((row for row in rows if READS.match(row.prefix)), None)
    if reads is None and _overlapping(recording.prefixes[crowd.rows]):
        reads = source(recording, layer)
    return upstream(recording, layer) if reads is None else Upstream(reads)


def _block(recording: Recording) -> int | None:
    """Bytes of a file that are read at once now; 0 if files are read whole, None: not known."""
    names = (_BLOCK.fullmatch(name) for name in recording.store.strings)
    starts = {int(found[1]) for found in names if found}
    return min(starts - {0}, default=0) if starts else None


RULE = Rule(
    id="large-graph",
    stage=None,
    summary="The number of pieces of arrays or data frames costs more than a share of the run.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "tasks": Limit(MANY, "a task costs about a millisecond: fewer never cost a second"),
        "share": Limit(0.05, "of the wall time: with less, no other size of pieces is worth it"),
        "piece_bytes": Limit(128e6, "larger pieces leave no room for copies in common workers"),
    },
)
