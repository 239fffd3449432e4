"""Which graph each piece of time is for: what `Groups` is for layers.

Row 0 is nobody's, row i + 1 the i-th graph's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np
from dask.utils import key_split

from stageprof_collectors.account.blame import Blame
from stageprof_collectors.account.busy import busy
from stageprof_collectors.account.groups import Parts
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.garbage import no_collection
from stageprof_collectors.storage.layered import Layered

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_NOTHING: Final[Parts] = {}


class ByGraph:
    """The graphs of one recording, as rows."""

    def __init__(self, of_run: Ints, layered: Layered) -> None:
        #: index of each run's row
        self.of_run = of_run
        self._tasks = np.bincount(of_run)
        self._named = _named(of_run, layered)

    def tasks(self, row: int) -> int:
        """Runs of a row."""
        return int(self._tasks[row]) if row < len(self._tasks) else 0

    def named(self, name: str) -> Parts:
        """The rows with runs of a layer, a key, or a prefix, by these."""
        return self._named.get(name) or self._named.get(key_split(name)) or _NOTHING

    def at(self, _line: str) -> Parts:
        """None: the same line may build many graphs, and what it builds is for the next one."""
        return _NOTHING

    def without_tasks(self, graph: int) -> Parts:
        """A graph is itself."""
        return {graph + 1: 1.0} if graph >= 0 else _NOTHING


def busy_seconds(recording: Recording) -> list[float]:
    """Seconds of work in the six stages for each of `timeline.graphs`."""
    owners = ByGraph(recording.timeline.graph_rows + 1, recording.layered)
    rows = np.zeros(len(recording.timeline.graphs) + 1)
    with no_collection():
        blame = Blame(recording.timeline, recording.lanes, owners)
        for parts in busy(recording, blame).values():
            rows[[*parts]] += [*parts.values()]
    return [float(ns) / 1e9 for ns in rows[1:]]


def _named(of_run: Ints, layered: Layered) -> dict[str, Counter[int]]:
    """Runs of each layer and prefix by row."""
    most = int(of_run.max(initial=0)) + 1
    pairs, counts = np.unique(layered.of * most + of_run, return_counts=True)
    found: defaultdict[str, Counter[int]] = defaultdict(Counter)
    columns = (column.tolist() for column in (*np.divmod(pairs, most), counts))
    for layer, row, count in zip(*columns, strict=True):
        for name in {layered.names[layer], layered.prefixes[layer]}:
            found[name][row] += count
    return dict(found)
