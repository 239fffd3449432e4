"""Training on all workers: how many pieces that takes, what it would save, and the code for it.

A framework trains where the pieces are, and Dask leaves what is derived from a piece where the
piece is: `repartition`, `rechunk` and, below 30 % of a worker's memory, `rebalance` move nothing.
So each piece is told its worker.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.findings.rule import Limit
from stageprof_collectors.replay.replay import Change

if TYPE_CHECKING:
    from stageprof_collectors.findings.training import Given, Training
    from stageprof_collectors.recording import Recording

#: What a thread more does at least of one's work in a training.
EFFICIENCY: Final = Limit(
    0.25,
    "workers wait for each other after each level of each tree: of short ones that is most of it",
)

#: Names for what the user has no name for.
DATA, LABELS = "data", "labels"

_CODE: Final = '''\
from itertools import cycle

import dask.{module} as {short}
from distributed import Client, wait

client = Client.current()


def spread(pieces):
    """Put the pieces on all workers, in turn."""
    workers = cycle(sorted(client.nthreads()))
    each = [pieces.partitions[i] for i in range(pieces.npartitions)]
    return {short}.{join}([client.persist(p, workers=[next(workers)]) for p in each])


{assignments}
wait([{names}])'''


def names_of(given: Given) -> list[str]:
    """What the user calls the data and its labels; placeholders where that is not known."""
    if not given.variable:
        return [DATA, LABELS]
    return [name for name in (given.variable, given.label) if name]


def enough(pieces: int, threads: int) -> int:
    """How many pieces keep all threads busy: as many as there are, or one for each thread."""
    return max(pieces, threads)


def rows_each(given: Given, pieces: int) -> int:
    """Rows of a piece if an array is cut into so many; -1 if its rows are not known."""
    return math.ceil(given.rows / pieces) if given.rows > 0 else -1


def code(given: Given, pieces: int) -> str:
    """Cuts data and labels into so many pieces and spreads them over all workers."""
    names = names_of(given)
    array = given.type == "Array"
    return _CODE.format(
        module="array" if array else "dataframe",
        short="da" if array else "dd",
        join="concatenate" if array else "concat",
        assignments="\n".join(_assignment(given, pieces, name) for name in names),
        names=", ".join(names),
    )


def _assignment(given: Given, pieces: int, name: str) -> str:
    unknown = given.type == "Array" and given.rows <= 0 and pieces != given.pieces
    sized = f"{name} = {name}.compute_chunk_sizes()\n" if unknown else ""
    return f"{sized}{name} = spread({name}{_cut(given, pieces, name)}.persist())"


def _cut(given: Given, pieces: int, name: str) -> str:
    if pieces == given.pieces:
        return ""
    if given.type != "Array":
        return f".repartition(npartitions={pieces})"
    rows = rows_each(given, pieces)
    if rows > 0:
        return f".rechunk({{0: {rows}}})"
    return f".rechunk({{0: -(-{name}.shape[0] // {pieces})}})"


def saving(
    recording: Recording, spread: Iterable[tuple[Training, int, int]], efficiency: float
) -> tuple[float, float]:
    """Seconds saved if each training used all threads instead of some, at least and at most.

    Args:
        recording: of the trainings.
        spread: trainings, with the threads that each used and those that there were.
        efficiency: what each further thread does at least of one's work; at most it does all.
    """
    compute = [np.ones(len(recording.timeline.runs["run"])) for _ in range(2)]
    for training, used, threads in spread:
        for factors, worth in zip(compute, (efficiency, 1.0), strict=True):
            factors[training.trainers] = used / (used + worth * (threads - used))
    low, high = (recording.replay.saving(Change(compute=factors)) for factors in compute)
    return min(low[0], high[0]), max(low[1], high[1])
