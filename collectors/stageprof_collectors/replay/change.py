"""What would be different in a run that is replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.path import Step
from stageprof_collectors.account.timeline import Ints

#: A factor for all runs, or one per row of `Timeline.runs`: 1 leaves it as it was, 0 takes it away.
Factor = float | NDArray[np.float64]

#: No part of a run takes longer than this, ns (decades); a damaged recording may say so.
_LONGEST: Final = 2.0**60


@dataclass(frozen=True)
class Change:
    """What would be different; everything not named stays as it was recorded.

    Factors multiply a time of each run: 0.25 leaves a quarter of it.
    """

    #: the task's function, from its start to its stop
    compute: Factor = 1.0
    #: from the end of what it needed to its arrival at a worker: the scheduler's decision, and the
    #: message with its dump and load
    lead: Factor = 1.0
    #: fetching what it needs from other workers
    fetch: Factor = 1.0
    #: from its stop to the scheduler's knowing
    lag: Factor = 1.0
    #: from its data and a thread being there to its start: what its worker did meanwhile
    begin: Factor = 1.0
    #: for a piece of the critical path that belongs to no run (construction, a graph's way to the
    #: scheduler, the gathering of results, ...): what fraction of it stays
    serial: Callable[[Step], float] | None = None
    #: threads of every worker, and how many workers; None: as they were
    threads: int | None = None
    workers: int | None = None
    #: groups of graphs (indices of `Timeline.graphs`) that one thread handed over one after
    #: another, and would hand over as one; see `arrangement`
    together: tuple[tuple[int, ...], ...] = ()
    #: of these graphs what part of its tasks is one's own, if not all; see `common`
    own: Mapping[int, float] = field(default_factory=dict)

    @property
    def of_messages(self) -> bool:
        """Whether only the tasks' ways would be shorter: the same functions on the same threads."""
        return not self.resized and bool(np.all(np.asarray(self.compute) == 1))

    @property
    def bare(self) -> bool:
        """Whether nothing would be left of tasks but their functions."""
        parts = (self.lead, self.fetch, self.lag, self.begin)
        return all(isinstance(part, float | int) and part == 0 for part in parts)

    @property
    def resized(self) -> bool:
        """Whether tasks would be dealt out to threads anew."""
        return self.threads is not None or self.workers is not None or bool(self.together)


def scaled(part: Ints, factor: Factor) -> Ints:
    """A time of each run, ns, with its factor."""
    if isinstance(factor, float | int) and factor == 1:
        return part
    times = np.rint(np.minimum(part * np.maximum(factor, 0.0), _LONGEST))
    return times.astype(np.int64)


def one_of(factor: Factor, row: int) -> float:
    """The factor of one run."""
    return float(factor[row]) if isinstance(factor, np.ndarray) else float(factor)


def crowding(change: Change, threads: Sequence[int], *, free: bool) -> float:
    """By how much threads wait longer for their next run if there are more of them.

    A worker's loop hands out no more tasks a second to more threads. Neither does the scheduler to
    more workers, if it was busy all the time; that is not known, so the two ways differ.

    Args:
        change: how many there would be.
        threads: how many each worker had.
        free: the way that does not keep tasks where they were.
    """
    was = [count for count in threads if count]
    per_worker = sum(was) / len(was) if was else 1.0
    more = 1.0 if change.threads is None else change.threads / per_worker
    if change.workers is not None and not free:
        more *= change.workers / max(len(was), 1)
    return max(1.0, more)
