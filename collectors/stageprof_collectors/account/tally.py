"""What was given to rows of the table of layers so far, and what is still to be shared out."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.groups import NOBODY, Parts
from stageprof_collectors.account.timeline import Ints

if TYPE_CHECKING:
    from stageprof_collectors.account.blame import Blame

Floats = NDArray[np.float64]

#: Time that is shared by no more rows is so at once.
_FEW: Final = 8


class Tally:
    """Nanoseconds by row, and what is still to be shared out by graph or over many rows."""

    def __init__(self) -> None:
        self.rows: defaultdict[int, float] = defaultdict(float)
        self.graphs: defaultdict[tuple[str, int], float] = defaultdict(float)
        #: the same by results wanted, from which to which
        self.results: defaultdict[tuple[int, int], float] = defaultdict(float)
        #: the same by the rows (which are the same object each time), beside them
        self._many: dict[int, tuple[Parts, list[float]]] = {}

    def share(self, ns: float, parts: Parts) -> None:
        """Add time that belongs to rows in proportion; over many rows all of it at once."""
        if len(parts) > _FEW:
            self._many.setdefault(id(parts), (parts, []))[1].append(ns)
        else:
            self._divide(ns, parts)

    def _divide(self, ns: float, parts: Parts) -> None:
        whole = sum(parts.values())
        if whole <= 0:
            self.rows[NOBODY] += ns
            return
        for row, part in parts.items():
            self.rows[row] += ns * part / whole

    def add(self, other: Tally, share: float) -> None:
        """Add a share of all that another has."""
        for row, ns in other.rows.items():
            self.rows[row] += share * ns
        for graph, ns in other.graphs.items():
            self.graphs[graph] += share * ns
        for results, ns in other.results.items():
            self.results[results] += share * ns
        for which, (parts, each) in other._many.items():
            self._many.setdefault(which, (parts, []))[1].append(share * sum(each))

    def settled(self, blame: Blame, whole: Tally | None = None) -> dict[int, float]:
        """All of it by row; as a part of a `whole`, which is to be settled later, as that is."""
        totals = (whole or self).graphs
        for (kind, graph), ns in self.graphs.items():
            self._divide(ns, blame.graphs.parts(kind, graph, totals[kind, graph]))
        if self.results:
            blame.wanted.share(self)
        for parts, each in self._many.values():
            self._divide(sum(each), parts)
        for done in (self.graphs, self.results, self._many):
            done.clear()
        return dict(self.rows)


class Wanted(NamedTuple):
    """Results that clients had asked for, in the order in which runs produced them.

    `until` has the bytes of all before the first, before the second, ... and of all of them.
    """

    times: Ints
    rows: Ints
    until: Floats

    def share(self, tally: Tally) -> None:
        """Add what belongs to some of them, one after another, to their rows by their bytes.

        A program that fetches one by one has as many such times as results: all are added at once.
        """
        (first, last), ns = np.array([*tally.results]).T, np.array([*tally.results.values()])
        each = ns / (self.until[last] - self.until[first])
        steps = np.bincount(first, each, len(self.until)) - np.bincount(last, each, len(self.until))
        shares = np.maximum(np.cumsum(steps)[:-1], 0) * np.diff(self.until)
        sums = np.bincount(self.rows, shares)
        for row in np.flatnonzero(sums).tolist():
            tally.rows[row] += float(sums[row])
