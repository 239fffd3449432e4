"""Where a collection gets its many pieces: up the graph from them, to the layer that makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.groups import Row

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: A layer with so many times fewer pieces than those made of them is cut up there.
FEW: Final = 8


class Upstream(NamedTuple):
    """The layer that makes the pieces, and how many pieces it cuts for that (0: none)."""

    row: Row
    cut: int


def upstream(recording: Recording, row: Row) -> Upstream:
    """Go up from a layer as long as those before have about as many pieces."""
    groups, needs = recording.groups, recording.timeline.depends
    of = np.repeat(groups.of_run, np.diff(needs.first))
    before = groups.of_run[needs.on]
    at, seen = groups.rows.index(row), set[int]()
    while at not in seen:
        seen.add(at)
        mine = of == at
        pieces = _pieces(needs.on[mine & (before != at)], groups.of_run)
        most = max(pieces, key=lambda group: pieces[group], default=at)
        if pieces.get(most, 0) * FEW <= groups.tasks(at):
            return Upstream(groups.rows[at], sum(pieces.values()))
        at = most
    return Upstream(groups.rows[at], 0)


def _pieces(runs: Ints, of_run: Ints) -> dict[int, int]:
    """How many of each layer's pieces these runs are."""
    found, number = np.unique(of_run[np.unique(runs)], return_counts=True)
    return dict(zip(found.tolist(), number.tolist(), strict=True))
