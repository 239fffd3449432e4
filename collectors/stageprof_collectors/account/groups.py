"""The rows of the table of layers: which layer and line each run belongs to.

A row is a layer made at a line. Tasks whose key is a text (`delayed` calls, futures) are layers of
one task each; those of one prefix and line are one row. Row 0 is nobody's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
from dask.utils import key_split
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import ran, worked
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.account.within import lines_of_layers
from stageprof_collectors.tables.lines import Line, Lines

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: The row of what belongs to no layer.
NOBODY: Final = 0

#: Row -> its part; parts need not sum to one.
Parts = Mapping[int, float]


class Owners(Protocol):
    """Whose a piece of time may be: rows, the first of which is nobody."""

    @property
    def of_run(self) -> Ints:
        """Index of each run's row."""

    def tasks(self, row: int) -> int:
        """Runs of a row."""

    def named(self, name: str) -> Parts:
        """The rows of a layer, a key, or a prefix, by their tasks; nothing if none is known."""

    def at(self, line: str, /) -> Parts:
        """The rows that "file:line" made, by their tasks; nothing if only time can tell."""

    def without_tasks(self, graph: int, /) -> Parts:
        """The rows of a graph none of whose tasks ran."""


class Row(NamedTuple):
    """A layer and where it was made."""

    layer: str
    prefix: str
    file: str
    line: int


class Groups:
    """The rows of one recording; grows by lines none of whose layers has run."""

    def __init__(self, recording: Recording) -> None:
        lines = Lines(recording.store)
        #: the first name made at each line, by "file:line"
        self._made = lines.first_names()
        self._known = lines
        #: the line of each layer
        self._lines = lines_of_layers(recording, lines)
        self._recording = recording
        self._index: dict[Row, int] = {}
        self.rows: list[Row] = [Row("", "", "", 0)]
        layered = recording.layered
        prefixes = dict(zip(layered.names, layered.prefixes, strict=True))
        #: prefixes of keys that are a layer by themselves
        alone = {prefixes[name] for name in layered.alone}
        self._by_layer = {name: self._row(name, prefixes, alone) for name in layered.names}
        of_layer = np.fromiter(self._by_layer.values(), np.int64, len(self._by_layer))
        #: index of each run's row
        self.of_run: Ints = of_layer[layered.of] if len(of_layer) else np.zeros(0, np.int64)
        were = self.of_run[ran(recording.timeline.runs)]
        self._tasks = np.bincount(were, minlength=len(self.rows)).tolist()
        self._by_name: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self._by_line: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for i, row in enumerate(self.rows[1:], start=1):
            if not self._tasks[i]:
                continue  # all that there was of it was given back
            for name in {row.layer, row.prefix}:
                self._by_name[name][i] = self._tasks[i]
            self._by_line[f"{row.file}:{row.line}"][i] = self._tasks[i]

    def line_of(self, layer: str) -> Line:
        """The line that made a layer, or within whose operation Dask made it."""
        return self._lines.get(layer) or self._known.of(layer)

    def most(self, runs: Sequence[int] | NDArray[Any]) -> Row:
        """The row of most of some runs, which are rows or a mask of theirs, and not none."""
        return self.rows[int(np.argmax(np.bincount(self.of_run[runs])))]

    def took(self, row: int) -> float:
        """Nanoseconds of the runs of a row, all together."""
        return float(self._took[row]) if row < len(self._took) else 0.0

    @cached_property
    def _took(self) -> NDArray[np.float64]:
        runs = self._recording.timeline.runs
        took = np.where(worked(runs), runs["stop"] - runs["start"], 0)
        return np.bincount(self.of_run, took, len(self._tasks)).astype(np.float64)

    def tasks(self, row: int) -> int:
        """Runs of a row."""
        return int(self._tasks[row]) if row < len(self._tasks) else 0

    def named(self, name: str) -> Parts:
        """The rows of a layer, a key, or a prefix, by their tasks; nothing if none is known."""
        row = self._by_layer.get(name)
        if row is not None:
            return {row: 1.0}
        return self._by_name.get(name) or self._by_name.get(key_split(name)) or {}

    def first_at(self, line: str) -> str:
        """The prefix of the first name that "file:line" made; "" if it made none."""
        name = self._made.get(line)
        return key_split(name) if name else ""

    def at(self, line: str) -> Parts:
        """The rows that "file:line" made, by their tasks; nothing if it made no layer."""
        if line in self._by_line:
            return self._by_line[line]
        name = self._made.get(line)
        if name is None:
            return {}
        file, _, number = line.rpartition(":")
        self._by_line[line][len(self.rows)] = 1
        self.rows.append(Row(name, key_split(name), file, int(number)))
        return self._by_line[line]

    def without_tasks(self, _graph: int) -> Parts:
        """Which layers it had nobody has told."""
        return {}

    def _row(self, name: str, prefixes: dict[str, str], alone: set[str]) -> int:
        line, prefix = self._lines[name], prefixes[name]
        row = Row(prefix if prefix in alone else name, prefix, line.file, line.line)
        index = self._index.setdefault(row, len(self.rows))
        if index == len(self.rows):
            self.rows.append(row)
        return index
