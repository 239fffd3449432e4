"""The rows of a picture that grows: which of them each task of a thread goes to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Final

from stageprof_collectors.storage.store import Store
from stageprof_collectors.text import LIMIT
from stageprof_ui.columns.boxes import SUBROWS
from stageprof_ui.columns.lines import Line
from stageprof_ui.columns.running import Ran
from stageprof_ui.columns.series import numbered, worker_label

#: A process: its place; or the scheduler's, and the text of a worker's address that tells nothing.
Process = tuple[int, int]
_TELLS: Final = -1


class Tracks:
    """The rows of all threads, in the order in which they are needed.

    Args:
        names: what workers are called, by their addresses; filled by who hears of it.
    """

    def __init__(self, names: dict[str, str]) -> None:
        #: one per row, and where each ends, in units
        self.lines: list[Line] = []
        self.ends: list[int] = []
        self._names = names
        self._labels: dict[Process, str] = {}
        #: of each thread its rows: coroutines overlap on their loop's thread
        self._rows: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        #: rows of each process, and those whose thread is not known yet
        self._of_process: defaultdict[Process, list[int]] = defaultdict(list)
        self._spare: defaultdict[Process, list[int]] = defaultdict(list)

    def knows(self, task: Ran) -> bool:
        """Whether its process has a row."""
        return _process(task) in self._labels

    def of(self, task: Ran, begin: int, store: Store) -> int | None:
        """The first of its thread's rows that is free then; None of too many at once."""
        rows = self._rows[task.place, task.thread]
        row = next((row for row in rows if self.ends[row] <= begin), None)
        if row is None and len(rows) < SUBROWS:
            process = _process(task)
            spare = self._spare[process]
            row = spare.pop(0) if spare else self._new(process, store)
            rows.append(row)
        return row

    def free(self, place: int, taken: Collection[int], store: Store) -> int:
        """The row of a worker that has been free for longest; a new one if none is."""
        process = place, _TELLS
        if rows := [row for row in self._of_process[process] if row not in taken]:
            return min(rows, key=lambda row: self.ends[row])
        row = self._new(process, store)
        self._spare[process].append(row)
        return row

    def _new(self, process: Process, store: Store) -> int:
        row, rows = len(self.lines), self._of_process[process]
        rows.append(row)
        if process not in self._labels:
            own = self._label(process, store)
            self._labels[process] = numbered([*self._labels.values(), own])[-1]
        worker = self._labels[process]
        # How many threads a worker has of which only the scheduler tells is not known.
        label = f"{worker}, thread {len(rows)}" if process[1] == _TELLS else worker
        self.lines.append(Line(label, (row,), 1.0, worker))
        self.ends.append(0)
        return row

    def _label(self, process: Process, store: Store) -> str:
        place, worker = process
        if worker == _TELLS:
            return worker_label(store.places[place].name, self._names, LIMIT)
        return f"{worker_label(store.strings[worker], self._names, LIMIT)} (not instrumented)"


def _process(task: Ran) -> Process:
    """The process that ran it."""
    return task.place, task.thread if task.guessed else _TELLS
