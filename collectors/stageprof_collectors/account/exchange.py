"""Shuffles and rechunks, as the keys of their tasks tell them: which tasks, and by which method.

Task-based (seen in Dask 2025.4.0 to 2026.8.0): frames "split-taskshuffle-<token>",
"group-taskshuffle-..", "stage-0-taskshuffle-..", "taskshuffle-..", the same with "simpleshuffle";
arrays "rechunk-split-..", "rechunk-merge-..". P2P: "shuffle-transfer-..", "shuffle-barrier-..",
"p2pshuffle-..", "hash-join-transfer-..", "hashjoinp2p-..", "rechunk-transfer-..", "rechunk-p2p-..".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_collectors.tables.lines import UNKNOWN, Line

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TASKS: Final = ("taskshuffle", "simpleshuffle")
_TASKS_OF_ARRAYS: Final = ("rechunk-split", "rechunk-merge")
_P2P: Final = (
    "shuffle-transfer",
    "shuffle-barrier",
    "p2pshuffle",
    "hash-join-transfer",
    "hashjoin",
)
_P2P_OF_ARRAYS: Final = ("rechunk-transfer", "rechunk-p2p")
#: So many times as many tasks as P2P needs are far more.
TIMES: Final = 3.0
#: Tasks that only cut a piece out of what another made.
_CUTS: Final = ("split-", "rechunk-split")


class Method(StrEnum):
    """How rows or elements change their places."""

    TASKS = "tasks"
    P2P = "p2p"


@dataclass(frozen=True)
class Exchange:
    """The tasks of one method for one kind of collection."""

    method: Method
    arrays: bool
    #: rows of `Timeline.runs`
    rows: Ints
    #: of these, the ones that only cut
    cuts: Ints
    #: the layer with most of them, and the line that made it
    layer: str
    line: Line


class Exchanges:
    """All exchanges of a recording that ran on a cluster."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def of(self, method: Method, *, arrays: bool) -> Exchange | None:
        """The runs of a method; None if there is none."""
        runs, layered = self._recording.timeline.runs, self._recording.layered
        mine = [i for i, name in enumerate(layered.names) if kind(name) == (method, arrays)]
        rows = np.flatnonzero(layered.among(mine) & (runs["run"] < LOCAL))
        if not len(rows):
            return None
        names = {layered.names[i] for i in mine}
        cutting = [i for i in mine if layered.names[i].startswith(_CUTS)]
        cuts = rows[layered.among(cutting)[rows]]
        first = Counter(layered.of[rows].tolist()).most_common(1)[0][0]
        return Exchange(method, arrays, rows, cuts, layered.names[first], self._line(names))

    def _line(self, names: set[str]) -> Line:
        """The line that made most of some layers."""
        lines = map(self._recording.groups.line_of, names)
        found = Counter(line for line in lines if line != UNKNOWN)
        return found.most_common(1)[0][0] if found else UNKNOWN


def p2p_tasks(recording: Recording, exchange: Exchange) -> int:
    """Tasks that P2P would need: one for each piece that goes in and comes out, and a barrier."""
    needs, n = recording.timeline.depends, len(recording.timeline.runs["run"])
    mine = np.zeros(n, np.bool_)
    mine[exchange.rows] = True
    user = needs.user
    inputs = np.unique(needs.on[mine[user] & ~mine[needs.on]])
    used_here = np.zeros(n, np.bool_)
    used_here[needs.on[mine[user]]] = True
    outputs = int((mine & ~used_here).sum())
    return max(len(inputs), 1) + max(outputs, 1) + 1


def squared(recording: Recording, rows: Ints) -> bool:
    """Whether most of some runs exchange by tasks on a cluster, far more of them than by P2P.

    Their number is the square of the pieces'. A rechunk that only cuts pieces up makes no more than
    these are.
    """
    exchanges = Exchanges(recording)
    found = [exchanges.of(Method.TASKS, arrays=arrays) for arrays in (False, True)]
    far = [e for e in found if e and len(e.rows) >= TIMES * p2p_tasks(recording, e)]
    return 2 * sum(int(np.isin(e.rows, rows).sum()) for e in far) > len(rows)


def kind(layer: str) -> tuple[Method, bool] | None:
    """Which method a layer is of, and whether it is of arrays; None if it exchanges nothing."""
    if layer.startswith(_TASKS_OF_ARRAYS):
        return Method.TASKS, True
    if layer.startswith(_P2P_OF_ARRAYS):
        return Method.P2P, True
    if any(word in layer for word in _TASKS):
        return Method.TASKS, False
    return (Method.P2P, False) if any(word in layer for word in _P2P) else None
