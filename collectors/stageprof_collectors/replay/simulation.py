"""Two ways through a model of waits, which between them bound what would happen.

*Fixed*: every run on the worker that had it, in the order in which the runs began; nothing is
decided anew, so this is the longest path through what waits for what. *Free*: whatever thread is
free takes the next run that can start, as list scheduling does; no list schedule takes more than
twice the time of the best one (Graham 1969), and Dask's schedulers are greedy in this sense.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stageprof_collectors.account.program import Kind, Program
from stageprof_collectors.replay.model import Model, Waits


class Amounts(NamedTuple):
    """What each part takes, ns: by row of the runs, and by operation of each program.

    `way`: lead and fetch; `turn`: from a thread's becoming free to the start; `pre`: the same
    for one that did not wait for a thread; `before` and `after`: see `Op`.
    """

    way: list[int]
    pre: list[int]
    turn: list[int]
    compute: list[int]
    lag: list[int]
    before: list[list[int]]
    after: list[list[int]]


#: The threads of each pool: since when each is there, ns.
Pools = list[list[int]]


class Paths:
    """What both ways need of a model, as plain lists; `waits` says what waits for what."""

    def __init__(self, model: Model, programs: list[Program], waits: Waits) -> None:
        self.n, self.programs = model.n, programs
        self.first: list[int] = waits.first.tolist()
        self.on: list[int] = waits.on.tolist()
        self.known: list[int] = (model.known - model.origin).tolist()
        self.received: list[int] = (model.received - model.origin).tolist()
        #: by row: the program that the run is, if it is one
        self.program_of = {p.run: k for k, p in enumerate(programs) if p.run >= 0}
        inline = {i for p in programs for op in p.ops if op.kind == Kind.INLINE for i in op.on}
        self.inline = inline
        order = model.order
        self.order = order[~np.isin(order, list(inline))] if inline else order
        self.model = model
