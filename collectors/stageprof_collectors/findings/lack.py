"""Why too few tasks were at work at once, and what to do: few, all in one, or one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.crowd import is_piece
from stageprof_collectors.findings.finding import Fix
from stageprof_collectors.findings.phrase import word
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.storage.layered import TUPLE

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording
    from stageprof_collectors.tables.crew import Crew

#: As many as Dask's own reductions of frames put together in one task; what needs more than so many
#: others has all of them.
TREE: Final = 8
#: Of the bytes that a task was given: what makes less of them is a reduction, and is small.
WHOLE: Final = 0.5

_FEW: Final = (
    "Cut the data into at least {parts} pieces, two or more for each of {threads}. It is best to "
    "read or make them so; a single piece that is cut afterwards has to be made first. If the "
    "work cannot be cut, fewer workers take the same time."
)
_TOGETHER: Final = (
    "{number} pieces were put together for `{prefix}`, and while one task works on all of them the "
    "other threads have nothing to do. Do the work on each piece, and put together what is small "
    "then (the code below). Dask's own `groupby`, `mean` and the like do so, with `split_out=` "
    "where groups are many. `repartition(npartitions=1)` comes last, if at all. A function of "
    "`dask.delayed` that is given a Dask collection gets all of it in one piece: call it by "
    "`map_partitions` or `map_blocks`."
)
_REDUCED: Final = (
    "The parts of a result are put together in one task, and while it works other threads have "
    "nothing to do. Have the result in {parts} pieces, with `split_out`: each is put together by "
    "itself then, and what follows works on the pieces. It pays where groups are many; of a result "
    "of a few rows it is not the putting together that takes long."
)
_CHAINED: Final = (
    "Each of them needs the one before, so that one runs at a time, however many there are. What "
    "is written into one file is written so: let each partition have a file of its own. Elsewhere "
    "let the tasks give parts of the answer, and put these together at the end (in pairs, as "
    "reductions do). If the order is needed, fewer workers take the same time."
)
_ARRAY: Final = (
    "axis = 0  # a long one, and none that the work goes along\n"
    "x = x.rechunk({{axis: -(-x.shape[axis] // {parts})}})  # better: chunks= where it is made"
)
_FRAME: Final = "ddf = ddf.repartition(npartitions={parts})  # better: as many when it is read"
_SPLIT: Final = """\
result = ddf.groupby(keys).agg(what, split_out={parts})  # or .sum(split_out={parts}), .mean(...)"""
_CALLS: Final = """\
import dask

size = -(-len(items) // {parts})  # items: what one task worked on; {name}: the plain function
parts = [items[i : i + size] for i in range(0, len(items), size)]
results = dask.compute(*[dask.delayed({name})(part) for part in parts])"""
_SMALL: Final = """\
import dask

# pieces: delayed (of a data frame ddf.to_delayed()); summary: the work on one, with a small result
parts = [dask.delayed(summary)(piece) for piece in pieces]
result = dask.delayed(combine)(parts).compute()  # combine: of all these small results"""
#: What Dask calls the tasks that put the parts of a frame's reduction together, eight at a time.
_TREE: Final = "-tree"
#: What `to_csv` calls the tasks that write into a single file.
_ONE_FILE: Final = "write_csv"
_FILES: Final = """\
ddf.to_csv("parts/*.csv")  # a file for each partition; quicker to read: .to_parquet("parts/")"""


class Lack(NamedTuple):
    """Why there was no further task.

    `seen`: the tasks that were at work, in words. `evidence`: why, and how many pieces. `needless`:
    whether they may go altogether, because what they put together can stay in pieces.
    """

    seen: str
    evidence: dict[str, float | int | str]
    fix: Fix
    needless: bool = False


def why(recording: Recording, crew: Crew, row: Row, rows: Ints) -> Lack:
    """Why threads lacked tasks while these were at work.

    Args:
        recording: of the run.
        crew: its workers.
        row: the layer of these tasks.
        rows: their runs.
    """
    number, evidence = count(len(rows), "task"), dict[str, float | int | str]()
    if _chained(recording, rows):
        fix = Fix(_CHAINED, _FILES if row.prefix == _ONE_FILE else "")
        return Lack(f"one of {number}", {"why": "one after another"}, fix)
    parts, together = 2 * max(1, crew.useful), _together(recording, rows)
    if row.prefix.endswith(_TREE) and _frames(recording, rows):
        fix = Fix(_REDUCED.format(parts=parts), _SPLIT.format(parts=parts))
        evidence = {"why": "a result in one piece", "pieces_advised": parts}
        return Lack(number, evidence, fix, needless=True)
    if together > TREE:
        fix = Fix(_TOGETHER.format(number=f"{together:,}", prefix=row.prefix), _SMALL)
        evidence = {"why": "all pieces in one task", "pieces": together}
        return Lack(number, evidence, fix, needless=True)
    text = _FEW.format(parts=parts, threads=count(crew.threads, "thread"))
    evidence = {"why": "too few tasks", "pieces_advised": parts}
    return Lack(number, evidence, Fix(text, _code(recording, row, rows, parts)))


def _chained(recording: Recording, rows: Ints) -> bool:
    """Whether most of these tasks needed another of them."""
    needs = recording.timeline.depends
    both = np.isin(needs.user, rows) & np.isin(needs.on, rows)
    return len(rows) > 2 and 2 * len(np.unique(needs.user[both])) > len(rows)


def _together(recording: Recording, rows: Ints) -> int:
    """Of how many results a single task got all: itself, or what it needed put them together."""
    if len(rows) != 1:
        return 0
    on, nbytes = _needed(recording, int(rows[0])), recording.timeline.runs["nbytes"]
    if len(on) == 1:
        given = _needed(recording, int(on[0]))
        on = given if nbytes[on[0]] >= WHOLE * nbytes[given].sum() else on
    return len(on)


def _needed(recording: Recording, row: int) -> Ints:
    needs = recording.timeline.depends
    found: Ints = needs.on[needs.first[row] : needs.first[row + 1]]
    return found


def _frames(recording: Recording, rows: Ints) -> bool:
    """Whether these tasks make data frames."""
    types = recording.store.strings[int(recording.timeline.runs["type"][rows[0]])]
    return is_piece(types) and "ndarray" not in types


def _code(recording: Recording, row: Row, rows: Ints, parts: int) -> str:
    keys = recording.store.keys(recording.timeline.runs["key"][rows[:1]])
    if keys and keys[0].startswith(TUPLE):
        return (_FRAME if _frames(recording, rows) else _ARRAY).format(parts=parts)
    return _CALLS.format(parts=parts, name=word(row.prefix, "work"))
