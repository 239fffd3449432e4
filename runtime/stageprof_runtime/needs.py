"""What a run needed of other runs, as rows of DEPEND; the same for clusters and local schedulers.

Called for every task that a scheduler places, so the usual cases (nothing needed, or one thing
that has just ended) make no row or one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from stageprof_runtime.batch import Row
from stageprof_runtime.event import DEPEND

#: Rows for one run. What it waited for last is its cause and always among them, so the others
#: matter only where the run is replayed with something changed.
MOST: Final = 1_000

#: As many have a row each, however full the ring is.
FEW: Final = 8

Emit = Callable[[Row], None]


def needed(emit: Emit, run: int, cause: int, runs: list[Any]) -> None:
    """Emit the rows of one run that needed the results of `runs`.

    Args:
        emit: takes a row.
        run: the run's number.
        cause: what led to it, as in ASSIGN.
        runs: the numbers of the runs that it needed; None for data that no run made.
    """
    known = [on for on in runs if on is not None]
    if not known:
        if cause >= 0:
            emit((DEPEND, run, -1))
    elif known != [cause]:
        for on in known:
            emit((DEPEND, run, on))


def spread(things: Any, most: int = MOST) -> list[Any]:
    """At most `most` things of a collection, evenly spread over it."""
    every = -(-len(things) // max(most, 1))
    return list(things) if every <= 1 else list(islice(things, 0, None, every))
