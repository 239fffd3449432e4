"""Crowds: many runs of one kind, whose number is what a run of the program suffers from.

A run is a *link* if it is in a long chain of runs each of which needs the one before and nothing
else, and nothing else needs that one; a *chunk* if it made a piece of an array or a data frame (its
key is a tuple); a *call* else: `delayed`, futures, bags, graphs of one's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.attempts import ran
from stageprof_collectors.account.groups import Groups, Row
from stageprof_collectors.account.indexing import holding
from stageprof_collectors.account.timeline import Ints

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Bools = NDArray[np.bool_]

#: In the names of types that are pieces of a chunked collection.
_PIECES: Final = ("ndarray", "dataframe", "series", "index", "matrix", "table")
_SPARSE: Final = ("coo", "csr", "csc")
#: From so many runs on it is their number that matters: each costs about a millisecond.
MANY: Final = 500
#: Shorter chains are usual: reading, cleaning and writing a file are three.
CHAIN: Final = 10


class Kind(StrEnum):
    """What the runs of a crowd are."""

    LINKS = "links"
    CHUNKS = "chunks"
    CALLS = "calls"


@dataclass(frozen=True)
class Crowd:
    """Runs of one kind: their rows in `Timeline.runs`, and what most of them belong to."""

    kind: Kind
    rows: Ints
    #: the layer with most of them
    main: Row
    #: "file:line" of all lines that made them or that need them
    lines: frozenset[str]

    @property
    def cause(self) -> str:
        """One cause for all rules that see the same crowd."""
        return f"tasks:{self.kind}"


class Crowds:
    """The crowds of a recording."""

    def __init__(self, recording: Recording, chain: int = CHAIN) -> None:
        self._recording = recording
        self._runs = recording.timeline.runs
        self._chain = chain
        self._known: dict[Kind, Crowd | None] = {}
        self.n = len(self._runs["run"])

    def of(self, kind: Kind) -> Crowd | None:
        """All runs of a kind; None if there is none."""
        if kind not in self._known:
            self._known[kind] = self._crowd(kind)
        return self._known[kind]

    def _crowd(self, kind: Kind) -> Crowd | None:
        rows = np.flatnonzero(self._of_kind(kind) & ran(self._runs))
        if not len(rows):
            return None
        mine = np.bincount(self.groups.of_run[rows], minlength=len(self.groups.rows))
        main = self.groups.rows[int(np.argmax(mine))]
        return Crowd(kind, rows, main, self.lines(rows))

    def _of_kind(self, kind: Kind) -> Bools:
        links = self.lengths >= self._chain
        if kind == Kind.LINKS:
            return links
        return ~links & (self._chunked if kind == Kind.CHUNKS else ~self._chunked)

    def cause(self, label: str) -> str:
        """The cause of what is slow at a line ("file:line"): its crowd, if it made a large one."""
        for kind in Kind if self.n >= MANY else ():
            crowd = self.of(kind)
            if crowd is not None and label in crowd.lines and len(crowd.rows) >= MANY:
                return crowd.cause
        return f"built:{label}"

    # -- chains -------------------------------------------------------------------------------

    @cached_property
    def _heads(self) -> tuple[Ints, Ints]:
        """Of each run the first run of its chain, and how many runs come before it there."""
        head = self._before()
        head = np.where(head >= 0, head, np.arange(self.n))
        place = (head != np.arange(self.n)).astype(np.int64)
        while not np.array_equal(higher := head[head], head):  # twice as far each time
            place += place[head]
            head = higher
        return head, place

    def _before(self) -> Ints:
        """Of each run the one that it alone needed and that it alone needs; -1: none."""
        needs = self._recording.timeline.depends
        number = np.diff(needs.first)
        needed = np.bincount(needs.on, minlength=self.n)
        one = np.flatnonzero(number == 1)
        on = needs.on[needs.first[one]]
        before = np.full(self.n, -1, np.int64)
        alone = needed[on] == 1
        before[one[alone]] = on[alone]
        return before

    @cached_property
    def lengths(self) -> Ints:
        """Of each run how many runs are in its chain."""
        head, _ = self._heads
        found: Ints = np.bincount(head, minlength=self.n)[head] if self.n else head
        return found

    def longest(self) -> Ints:
        """The rows of the longest chain, in order."""
        head, place = self._heads
        rows = np.flatnonzero(head == head[int(np.argmax(self.lengths))])
        found: Ints = rows[np.argsort(place[rows], kind="stable")]
        return found

    # -- what runs made -----------------------------------------------------------------------

    @cached_property
    def groups(self) -> Groups:
        """The layers of the runs."""
        return self._recording.groups

    @cached_property
    def _chunked(self) -> Bools:
        """Which runs have a tuple for a key, if most of these made pieces of a collection.

        Positions by which an array is indexed are a part of it.
        """
        layered = self._recording.layered
        tuples = layered.chunked | holding(layered)
        names = [name.lower() for name in self._recording.store.strings]
        types = self._runs["type"]
        pieces = np.array([is_piece(name) for name in names], np.bool_)[types]
        lists = np.array([name.endswith("list") for name in names], np.bool_)[types]
        if (tuples & lists).sum() > (tuples & pieces).sum():  # a bag's partitions are lists
            tuples[:] = False
        return tuples

    def lines(self, rows: Ints) -> frozenset[str]:
        """All lines that made some runs or that need them, as "file:line"."""
        needs = self._recording.timeline.depends
        mine = np.zeros(self.n, np.bool_)
        mine[rows] = True
        row = needs.user
        mine[row[mine[needs.on]]] = True
        made = np.unique(self.groups.of_run[mine])
        groups = [self.groups.rows[i] for i in made.tolist()]
        return frozenset(f"{g.file}:{g.line}" for g in groups if g.file)


def is_piece(type_name: str) -> bool:
    """Whether a result of this type is a piece of an array or a data frame."""
    name = type_name.rpartition(".")[2].lower()
    return name.endswith(_PIECES) or name.startswith(_SPARSE)
