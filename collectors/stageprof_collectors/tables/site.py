"""A line of the user's program and what it made: layers, tasks, and of which kind of collection."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stageprof_collectors.account.groups import Groups
from stageprof_collectors.account.timeline import present
from stageprof_collectors.findings.crowd import Bools, is_piece
from stageprof_collectors.text import line_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording


class Collection(StrEnum):
    """What kind of Dask collection something is."""

    ARRAY = "array"
    FRAME = "data frame"
    CALLS = "calls"
    #: arrays or data frames: local schedulers do not tell what their tasks return
    PIECES = "pieces"


class Site:
    """A line, as "file:line"; one that made nothing that ran is known by its name alone."""

    def __init__(self, recording: Recording, groups: Groups, label: str) -> None:
        self._recording = recording
        self._groups = groups
        self.label = label
        self.file, self.line = line_of(label)
        #: rows of the table of layers
        self._made = [row for row in groups.at(label) if row]

    @property
    def layers(self) -> int:
        """Layers that ran."""
        return sum(self._groups.tasks(row) > 0 for row in self._made)

    @property
    def layer(self) -> str:
        """The layer whose tasks took longest; "" if none is known."""
        return self._groups.rows[self._main].layer if self._made else ""

    @property
    def prefix(self) -> str:
        """The prefix of its tasks' keys: often the function's name."""
        return self._groups.rows[self._main].prefix if self._made else ""

    @cached_property
    def _main(self) -> int:
        took, tasks = self._groups.took, self._groups.tasks
        return max(self._made, key=lambda row: (took(row), tasks(row)))

    @property
    def first(self) -> str:
        """The prefix of what the line made first, whether it ran or became part of another."""
        return self._groups.first_at(self.label)

    @cached_property
    def runs(self) -> Bools:
        """Which runs it made."""
        found: Bools = np.isin(self._groups.of_run, self._made)
        return found

    @property
    def graphs(self) -> int:
        """How many graphs it handed over."""
        known = self._recording.handed_over
        return int(((known["file"] == self.file) & (known["line"] == self.line)).sum())

    @property
    def chunked(self) -> bool:
        """Whether most of its tasks are pieces of a collection, by their keys."""
        return self._chunked(self.runs)

    @cached_property
    def collection(self) -> Collection:
        """By the results of its tasks; if these say nothing, by those of all."""
        everything = np.ones(len(self.runs), np.bool_)
        known = self._kind(self.runs) or self._kind(everything)
        if known is None and self._untold(self.runs if self.runs.any() else everything):
            return Collection.PIECES
        return known or Collection.CALLS

    def _untold(self, mine: Bools) -> bool:
        """Whether most of these are pieces by their keys, and nobody says of what."""
        texts = self._recording.store.strings
        told = any(texts[i] for i in present(self._recording.timeline.runs["type"][mine]))
        return not told and self._chunked(mine)

    def _chunked(self, mine: Bools) -> bool:
        chunked = self._recording.layered.chunked[mine]
        return int(chunked.sum()) * 2 > len(chunked)

    def _kind(self, mine: Bools) -> Collection | None:
        texts = self._recording.store.strings
        types = Counter(self._recording.timeline.runs["type"][mine].tolist())
        pieces = [texts[i] for i, _ in types.most_common() if is_piece(texts[i])]
        if not pieces:
            return None
        return Collection.ARRAY if "ndarray" in pieces[0] else Collection.FRAME
