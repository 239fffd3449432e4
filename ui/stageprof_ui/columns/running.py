"""Tasks while a run goes on: those that workers have and have not ended, and what is told.

The scheduler tells which task it gave to which worker, and when. A worker begins those that it was
given first, as a rule, so of the tasks that it has the oldest are taken to run: one for each of its
threads. On which thread, is known when they have ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Tasks that are looked through for those that run; the scheduler may give away very many at once.
_MOST: Final = 20_000


class Given(NamedTuple):
    """A task that a worker has."""

    run: int
    #: when the scheduler gave it away, ns of the common clock
    since: int
    #: the worker's address
    worker: str
    #: as `Store.keys` takes it
    key: int


@dataclass(frozen=True)
class Now:
    """A task that is taken to run: where it is drawn, from when, and what it is."""

    row: int
    #: in units since the start: when it was given away, or the one before it in its row ended
    start: int
    layer: int
    #: safe to show
    key: str
    #: seconds since it was given to its worker
    age: float


class Ran(NamedTuple):
    """A task that ended, on the common clock.

    Of a worker without stageprof it is its scheduler's guess, by when it heard of it: `place` is
    the scheduler's, and `thread` the text of the worker's address.
    """

    run: int
    place: int
    thread: int
    start: int
    stop: int
    guessed: bool
    #: looks since it was told
    age: int = 0


@dataclass(frozen=True)
class Delta:
    """Boxes from one on: one entry per box in each array; times in units since the start."""

    first: int
    row: NDArray[np.uint32]
    start: NDArray[np.uint32]
    length: NDArray[np.uint32]
    layer: NDArray[np.uint16]


class Open:
    """The tasks that were given away and have not ended."""

    def __init__(self) -> None:
        self._given: dict[int, Given] = {}  # in the order in which they were

    def __len__(self) -> int:
        return len(self._given)

    def give(self, tasks: Iterable[Given]) -> None:
        """A worker has these now."""
        self._given |= {task.run: task for task in tasks}

    def end(self, runs: Iterable[int]) -> None:
        """These have ended, as the worker or the scheduler says."""
        for run in runs:
            self._given.pop(run, None)

    def running(self, threads: Mapping[str, int]) -> Iterator[Given]:
        """Those that are taken to run, the oldest first, by the threads of each worker."""
        free, most = Counter(threads), sum(threads.values())
        for looked, task in enumerate(self._given.values()):
            if looked >= _MOST or most <= 0:
                return
            if free[task.worker] > 0:
                free[task.worker] -= 1
                most -= 1
                yield task
