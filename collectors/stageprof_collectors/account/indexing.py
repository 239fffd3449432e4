"""Arrays indexed by positions, as the keys of their tasks tell it.

Of each piece of what is asked for Dask takes what is in one piece of the array by a task of its own
("shuffle-split-..", by positions from "shuffle-taker-.."), and puts these together in order
("shuffle-sorter-.."); see `dask.array._shuffle`, Dask 2025.4.0 to 2026.8.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import LOCAL, Ints, Timeline
from stageprof_collectors.storage.layered import Layered

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

SPLIT: Final = "shuffle-split"
#: What `dask.array.shuffle` calls its pieces.
SHUFFLE: Final = "shuffle"
#: What Dask makes beside the pieces: positions, one task for each set of them.
POSITIONS: Final = ("shuffle-taker", "shuffle-sorter")
#: So many times as many tasks as positions in order need are far more.
TIMES: Final = 3.0


@dataclass(frozen=True)
class Indexing:
    """All that a recording's arrays were indexed by positions; rows are those of `Timeline.runs`.

    Attributes:
        splits: take from one piece of the array what one piece of the result has of it.
        positions: hold where that is.
        joins: put the pieces of the result together.
        sources: the pieces of the array.
    """

    splits: Ints
    positions: Ints
    joins: Ints
    sources: Ints

    @property
    def rows(self) -> Ints:
        """The runs that index."""
        return np.sort(np.concatenate([self.splits, self.positions, self.joins]))

    @property
    def in_order(self) -> int:
        """About as many tasks it would be with the positions in order."""
        parts = self.splits, self.positions, self.joins, self.sources
        return in_order(*map(len, parts))

    @property
    def times(self) -> float:
        """How many times as many tasks it is."""
        return len(self.rows) / max(1, self.in_order)


def in_order(splits: int, positions: int, joins: int, sources: int) -> int:
    """About as many tasks as so many of each would be with the positions in order.

    Each border between pieces, of the array and of the result, begins one more piece.
    """
    pieces = sources + joins
    beside = max(1.0, splits / max(1, positions))  # pieces with the same positions
    return round(pieces + joins + pieces / beside)


def indexing(timeline: Timeline, layered: Layered) -> Indexing | None:
    """Of a recording on a cluster; None if nothing in it was indexed by positions."""
    positions = holding(layered)
    splits = layered.prefixed(SPLIT.__eq__)
    splits &= timeline.runs["run"] < LOCAL
    if not positions.any() or not splits.any():
        return None
    user, on = timeline.depends.user, timeline.depends.on
    taking = np.zeros(len(positions), np.bool_)
    taking[user[positions[on]]] = True
    splits &= taking  # a bag's `groupby` splits, too
    splits[on[splits[on] & _shuffled(layered)[user]]] = False
    if not splits.any():
        return None
    joins = np.unique(user[splits[on]])
    sources = np.unique(on[splits[user] & ~positions[on]])
    return Indexing(np.flatnonzero(splits), np.flatnonzero(positions), joins, sources)


def _shuffled(layered: Layered) -> NDArray[np.bool_]:
    """Which keys are of what `dask.array.shuffle` gives: its order is what was asked for.

    Or of what is fused with it ("shuffle-sum").
    """
    return layered.prefixed(lambda prefix: SHUFFLE in prefix.split("-"))


def holding(layered: Layered) -> NDArray[np.bool_]:
    """Which keys are of tasks that hold positions."""
    return layered.prefixed(POSITIONS.__contains__)


def out_of_order(recording: Recording, rows: Ints) -> bool:
    """Whether most of some runs index by positions out of order, far more than in order."""
    found = recording.indexing
    if found is None or found.times < TIMES:
        return False
    return 2 * int(np.isin(found.rows, rows).sum()) > len(rows)
