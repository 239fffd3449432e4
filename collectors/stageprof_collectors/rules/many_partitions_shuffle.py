"""The same data shuffled again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
from dask.utils import key_split

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import size
from stageprof_collectors.findings.reshuffles import Repeated, Reshuffles
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.sizing import kept_in_memory
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.replay.toll import toll
from stageprof_collectors.tables.lines import Line
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


_TEXT: Final = (
    "Bring the rows of a key together once and keep them so: `persist` what was shuffled, and go "
    "on from it. "
)
_SORTED: Final = (
    "Better still, write the data sorted by that key, and read them with known divisions "
    "(`set_index(key, sorted=True)`): then nothing is shuffled in the next run either."
)
_PARTS: Final = (
    "Dask does not know of persisted data how they were shuffled, so that its own groupby and "
    "merge would do it again; pandas' in `map_partitions` finds all rows of a key in one part. "
)
_INDEXES: Final = "Dask joins two frames without a shuffle if the key is the index of both. "
_STORED: Final = (
    "What is shuffled does not fit into the workers' memory ({size}): write it once, sorted by the "
    "key, and read that with its divisions from then on. Nothing is shuffled then, in this run or "
    "the next."
)
_STORE: Final = """\
import dask.dataframe as dd

def sorted_by(ddf, key, target):  # `key` is the column by which rows are brought together
    ddf.set_index(key).to_parquet(target)
    return dd.read_parquet(target, calculate_divisions=True)"""
_CODE: Final = """\
# `key` is the column by which rows are brought together
by_key = ddf.shuffle(key).persist()
# ask each question of the parts, with what you do now to the groups in place of `.max()`
answer = by_key.map_partitions(lambda part: part.groupby(key).max())"""
_JOINS: Final = """\
# `key` is the column of the joins, which becomes the index, as of what `by_key` is joined with
by_key = ddf.set_index(key).persist()
# how: as in your joins; `joined.reset_index()` has the key as a column again
joined = by_key.merge(other.set_index(key), left_index=True, right_index=True, how="inner")"""
_INDEXED: Final = """\
# `key` is the column that becomes the index; use `by_key` wherever you use what this line makes
by_key = ddf.set_index(key).persist()"""
#: The layer by which `set_index` says to which partition each row goes.
_INDEXING: Final = "set_partitions_pre"


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each set of data that was shuffled more than once."""
    if not any("shuffle" in name or "hash" in name for name in recording.layered.names):
        return
    for repeated in Reshuffles(recording).all:
        change = _without(recording, repeated)
        cost = toll(recording, change)
        if cost >= limits["share"] * recording.wall:
            yield _finding(recording, repeated, change, cost)


def _without(recording: Recording, repeated: Repeated) -> Change:
    left = np.ones(len(recording.timeline.runs["run"]))
    left[repeated.again] = 0.0
    return Change(compute=left, lead=left, fetch=left, lag=left, begin=left)


def _finding(recording: Recording, repeated: Repeated, change: Change, cost: float) -> Finding:
    saved = recording.replay.saving(change)
    line = repeated.line
    source = key_split(min(repeated.sources))
    fits = kept_in_memory(recording, _each(repeated))
    if not repeated.entry or not fits:  # they may have been shuffled by other keys
        saved = 0.0, saved[1]
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"The results of `{source}` are shuffled {repeated.times} times"
            f"{made_at(line.file, line.line)} ({size(repeated.nbytes)} more than once): "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.COMMUNICATION,
        evidence={
            "shuffles": repeated.times,
            "tasks_again": len(repeated.again),
            "shuffled_again_bytes": repeated.nbytes,
            "source": source,
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(recording, repeated) if fits else _stored(_each(repeated)),
        where=Where(line.file, line.line, "", min(repeated.sources), source),
        # The same keys made again are one cause with what repeated-compute says of them.
        cause=f"again:{repeated.entry}" if repeated.entry else f"shuffle:{source}",
    )


def _each(repeated: Repeated) -> float:
    """Bytes of what is shuffled, once."""
    return repeated.nbytes / max(repeated.times - 1, 1)


def _stored(nbytes: float) -> Fix:
    return Fix(_STORED.format(size=size(nbytes)), _STORE)


def _fix(recording: Recording, repeated: Repeated) -> Fix:
    if _for_index(recording, repeated.line):
        return Fix(_TEXT + _SORTED, _INDEXED)
    if repeated.joins:
        return Fix(_TEXT + _INDEXES + _SORTED, _JOINS)
    return Fix(_TEXT + _PARTS + _SORTED, _CODE)


def _for_index(recording: Recording, line: Line) -> bool:
    """Whether a line shuffles because it sets an index."""
    groups = recording.groups
    made = groups.at(f"{line.file}:{line.line}") if line.file else ()
    return any(_INDEXING in groups.rows[i].layer for i in made)


RULE = Rule(
    id="many-partitions-shuffle",
    stage=Stage.COMMUNICATION,
    summary="The same data are shuffled more than once.",
    find=find,
    ground=Ground.CROWDED,
    instead_of=frozenset({"repeated-compute"}),
    limits={
        "share": Limit(0.02, "of the wall time on the critical path: less is not worth the memory"),
    },
)
