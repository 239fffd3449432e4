"""Arrays and data frames in so many pieces that their number costs more than the work on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from stageprof_collectors.account.exchange import squared
from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.batch import batch, rounded
from stageprof_collectors.findings.crowd import MANY, Crowd, Crowds, Kind, is_piece
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import seconds, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.upstream import FEW, Upstream, upstream

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Use larger {pieces}: about {target} each instead of {now}, so that there are about {k:,} "
    "times fewer tasks. Each task costs about {each} whatever its size. Choose the size where the "
    "data are read or made{at}: changing it later adds tasks instead of taking them away."
)
_UNTOLD: Final = (
    "Use larger chunks or partitions: about {k:,} times as large, so that there are so many times "
    "fewer tasks. Each task costs about {each} whatever its size. How large they are now a local "
    "scheduler does not tell, so look whether your memory has room for it. Choose the size where "
    "the data are read or made{at}: changing it later adds tasks instead of taking them away."
)
_CUT: Final = (
    "Do without the many small pieces: `{prefix}`{at} makes {number:,} pieces of {before:,}, so "
    "that larger ones before it do not help. Give what is combined there the same chunks, or work "
    "on whole pieces with a function of your own (`map_blocks`, `map_partitions`); if neither "
    "goes, put them together right behind it (`rechunk`, `repartition`), {sized}, so that what "
    "follows has about {k:,} times fewer tasks. Each task costs about {each} whatever its size."
)
_SIZED: Final = "about {target} each instead of {now}"
_UNSIZED: Final = (
    "about {k:,} of them each (how large they are a local scheduler does not tell, so look whether "
    "your memory has room for it)"
)
#: Pieces of unknown size should grow no more: their tasks need several times as much memory.
_BLIND: Final = 10
_ARRAY: Final = """\
import dask

dask.config.set({{"array.chunk-size": "{plain}"}})  # what chunks="auto" aims at"""
_FRAME: Final = """\
npartitions = {parts}  # for the call that makes them: from_pandas(..., npartitions=npartitions)"""
_READ: Final = """\
blocksize = "{plain}"  # for the call that reads: {call}(..., blocksize=blocksize)"""
#: Layers that read text files, of which Dask is told how many bytes become a partition.
_READS: Final = re.compile(r"read[-_]?(csv|table|fwf|json)")
#: The name of a block of such a file, by where it begins.
_BLOCK: Final = re.compile(r"read-block-(\d{1,15})")


@dataclass(frozen=True)
class Pieces:
    """The pieces of the collection that has most: how many, and how large the usual one is.

    Their number is that of one graph: what a loop computes each time has no more pieces for that.
    """

    number: int
    #: 0: not told, as by local schedulers
    nbytes: float
    #: None: not told
    frames: bool | None
    #: the usual size in the layer with the largest of those whose pieces grow with these
    largest: float = 0.0

    @property
    def word(self) -> str:
        """What their users call them."""
        return {None: "pieces", True: "partitions", False: "chunks"}[self.frames]


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
    pieces = _pieces(recording, crowds, crowd)
    most = limits["piece_bytes"] / pieces.largest if pieces.nbytes else _BLIND
    k = rounded(batch(overhead, pieces.number, most))
    if k > 1:
        yield _finding(recording, crowd, overhead, pieces, k)


def _pieces(recording: Recording, crowds: Crowds, crowd: Crowd) -> Pieces:
    runs, names = recording.timeline.runs, recording.store.strings
    types = np.array([is_piece(name) for name in names])
    rows: Ints = crowd.rows[types[runs["type"][crowd.rows]]]
    rows = rows if len(rows) else crowd.rows
    layers, nbytes = crowds.groups.of_run[rows], runs["nbytes"][rows]
    mine = layers == _most(layers, nbytes)
    kind = names[int(runs["type"][rows[mine][0]])]
    frames = "ndarray" not in kind if kind else None
    number = int(mine.sum())
    usual = float(np.median(nbytes[mine]))
    largest = max(usual, _largest(layers, nbytes, number))
    graphs = recording.timeline.graph_rows[rows[mine]]
    return Pieces(int(np.bincount(graphs + 1).max()), usual, frames, largest)


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
    recording: Recording, crowd: Crowd, overhead: Overhead, pieces: Pieces, k: int
) -> Finding:
    saved = overhead.saving(k)
    main, tasks, cost = crowd.main, len(crowd.rows), overhead.seconds
    made = _made(recording, crowd)
    if made.cut:  # to put them together again takes the tasks that cut them
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
        fix=_cut(overhead.each_s, pieces, k, made)
        if made.cut
        else fix(overhead.each_s, pieces, k, made=made.row, block=_block(recording)),
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


def _made(recording: Recording, crowd: Crowd) -> Upstream:
    """The layer that sets the number of pieces: the one of most tasks that reads, if one does."""
    groups = recording.groups
    of_run, number = np.unique(groups.of_run[crowd.rows], return_counts=True)
    rows = [groups.rows[i] for i in of_run[np.argsort(-number, kind="stable")].tolist()]
    reads = next((row for row in rows if _READS.match(row.prefix)), None)
    return upstream(recording, crowd.main) if reads is None else Upstream(reads, 0)


def _block(recording: Recording) -> int:
    """Bytes of a file that are read at once now; 0 if no file is cut."""
    names = (_BLOCK.fullmatch(name) for name in recording.store.strings)
    return min((n for found in names if found and (n := int(found[1]))), default=0)


def _cut(each_s: float, pieces: Pieces, k: int, made: Upstream) -> Fix:
    """What to do where larger pieces are cut up."""
    sized = _SIZED if pieces.nbytes else _UNSIZED
    return Fix(
        _CUT.format(
            prefix=made.row.prefix,
            at=made_at(made.row.file, made.row.line),
            number=pieces.number,
            before=made.cut,
            sized=sized.format(target=size(pieces.nbytes * k), now=size(pieces.nbytes), k=k),
            k=k,
            each=seconds(each_s),
        )
    )


def fix(each_s: float, pieces: Pieces, k: int, *, made: Row, block: int = 0) -> Fix:
    """What to do where a task costs `each_s` beside its work: pieces `k` times as large.

    They are made by the layer `made`, of `block` bytes of a file each (0: not known).
    """
    at = made_at(made.file, made.line, ", at ")
    if not pieces.nbytes:
        return Fix(_UNTOLD.format(k=k, each=seconds(each_s), at=at))
    target = pieces.nbytes * k
    text = _TEXT.format(
        pieces=pieces.word,
        target=size(target),
        now=size(pieces.nbytes),
        k=k,
        each=seconds(each_s),
        at=at,
    )
    return Fix(text, _code(pieces, k, made.prefix, (block or pieces.nbytes) * k))


def _code(pieces: Pieces, k: int, prefix: str, block: float) -> str:
    if not pieces.frames:
        return _ARRAY.format(plain=_plain(pieces.nbytes * k))
    reads = _READS.match(prefix)
    if reads:
        return _READ.format(plain=_plain(block), call=f"read_{reads[1]}")
    return _FRAME.format(parts=max(1, pieces.number // k))


def _plain(nbytes: float) -> str:
    """A size as Dask reads it."""
    unit, name = (1e6, "MB") if nbytes >= 1e6 else (1e3, "kB")
    return f"{max(1, round(nbytes / unit))}{name}"


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
