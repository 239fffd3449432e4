"""The runs that are under way on a scheduler, as its batches tell.

A run whose end was not told would be under way for as long as the scheduler lives, and somebody
would seem to wait for it: one that may have ended so is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from stageprof_runtime.batch import Row
from stageprof_runtime.event import ASSIGN, GRAPH, MARK
from stageprof_runtime.flight.table import Batch, rows, values

#: Runs of one scheduler that are kept.
MOST: Final = 100_000
#: The hook that tells of runs; of those that it does not tell at all nothing is known.
HOOK: Final = "scheduler.transition: "


class Runs:
    """Those of one scheduler, and the graph that came last."""

    def __init__(self) -> None:
        self._rows: dict[int, Row] = {}
        self._graph: Row | None = None
        #: number of the last batch, and what was dropped up to it
        self._seq = -1
        self._drops: dict[str, int] = {}
        #: whether not all that the scheduler does is told any more
        self._partial = False
        #: whether there were more than are kept, which may still be under way
        self.overflowed = False

    def learn(self, batch: Batch, left: Mapping[str, int]) -> None:
        """From the next batch of the scheduler; of workers that left, and when."""
        if self._lacks(batch):
            self._forget()
        begun = self._begin(batch)
        finished = batch["tables"].get("finish")
        for run in values(finished[1]["run"]) if finished else ():
            self._rows.pop(run, None)
        if left:
            self._rows = {run: row for run, row in self._rows.items() if not _is_lost(row, left)}
        if self._partial or (not begun and _is_idle(batch)):
            self._forget()

    def _lacks(self, batch: Batch) -> bool:
        """Whether something was lost between the last batch and this one."""
        seq, drops = self._seq, self._drops
        self._seq, self._drops = batch["seq"], batch["drops"]
        strings = batch["strings"]
        for _, name, label in rows(batch, MARK):
            off = strings[name] == "hook disabled" and strings[label].startswith(HOOK)
            self._partial = self._partial or off
        return self._seq != seq + 1 or self._drops != drops

    def _begin(self, batch: Batch) -> bool:
        """Take in what was given to workers; whether anything was."""
        strings, begun = batch["strings"], False
        for *numbers, client, parent in rows(batch, GRAPH):
            self._graph = (GRAPH, *numbers, strings[client], parent)
        for run, t, worker, cause, key in rows(batch, ASSIGN):
            begun = True
            if len(self._rows) < MOST:
                self._rows[run] = (ASSIGN, run, t, strings[worker], cause, key)
            else:
                self.overflowed = True
        return begun

    def _forget(self) -> None:
        self._rows.clear()
        self.overflowed = False

    def rows(self) -> Iterator[Row]:
        """As the scheduler told them, with the graph that somebody waits for."""
        if self._graph is not None and self._rows:  # else nobody waits for it any more
            yield self._graph
        yield from self._rows.values()


def _is_lost(row: Row, left: Mapping[str, int]) -> bool:
    """Whether a run was given to a worker that left since; another may have its address now."""
    when: int | None = left.get(row[3])
    return when is not None and row[2] <= when


def _is_idle(batch: Batch) -> bool:
    """Whether the scheduler counts no run that is under way."""
    _, assigned, finished = batch["counts"]
    return int(assigned) <= int(finished)
