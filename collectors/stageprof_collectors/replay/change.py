"""What would be different in a run that is replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.path import Step

#: A factor for all runs, or one per row of `Timeline.runs`: 1 leaves it as it was, 0 takes it away.
Factor = float | NDArray[np.float64]


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
