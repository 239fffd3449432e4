"""A recording on one clock: spans, runs, graphs and blocks as aligned columns.

Everything before this writes events in each place's own time; everything after reads this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from stageprof_collectors.account.attempts import (
    LOCAL,
    Columns,
    Ints,
    attempts,
    ended,
    lookup,
    ordered,
    own_last,
    with_ongoing,
)
from stageprof_collectors.account.causality import Bounds, bounds, of_workers, shift
from stageprof_collectors.account.depend import Depends, depends
from stageprof_collectors.account.graph import Graph, graph_of_runs, graphs, row_of_graphs
from stageprof_collectors.account.underway import Keyless, with_those_before
from stageprof_collectors.profiles.gil import Gil
from stageprof_collectors.storage.abreast import abreast
from stageprof_collectors.storage.alignment import Clock, align
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.storage.store import Store
from stageprof_collectors.tables.cells import rename
from stageprof_collectors.text import number
from stageprof_runtime.cells import MARK_NAME
from stageprof_runtime.event import NO_CAUSE

#: Rows that are put on another clock at once: what is made of them on the way fits into a cache.
_PIECE = 1 << 16
#: What a row says of a run but its thread and worker.
_INSTANTS: Final = ("received", "ready", "start", "stop")


@dataclass(frozen=True)
class Region:
    """What is accounted: from `start` to `stop` (ns, the client's clock) of one lane.

    `lane` is the thread that entered, or the negative number of an async region; `thread` is
    the thread either way; `place` the index of the client. `attached` when there was no region:
    a cluster recorded from outside. Not `ended` when the recording was over before it.
    """

    start: int
    stop: int
    lane: int
    thread: int
    place: int
    attached: bool = False
    ended: bool = True


class Timeline:
    """The tables of a store, with all times on the clock of the region's place."""

    def __init__(self, store: Store, bounds: Bounds | None = None) -> None:
        self.store = store
        self._marks = store.table("mark")
        self._numbered: dict[int, tuple[Ints, Ints]] = {}
        reference = self._reference()
        self.clocks: list[Clock] = align(store, reference)
        #: recorded from outside: the place whose clock it is on; of a region -1
        self._outside = -1 if len(self._named("region start")) else reference
        #: tasks that ended and of which not even the key is known: start, stop (ns), worker's place
        self.keyless: Keyless = []
        self._by_causality(self.bounds() if bounds is None else bounds)
        self.region = self._region(reference)
        rename(store.strings, (label for _, _, label in self.marks(MARK_NAME)))

    # -- tables -----------------------------------------------------------------------------

    def read(self, name: str, *times: str) -> Columns:
        """A table with the named columns on the common clock."""
        table: Columns = dict(self.store.table(name))
        place = table["place"]
        pieces = list(_by_place(place)) if times else []

        def align(column: str) -> Ints:
            values, out = table[column], np.empty_like(table[column])
            for p, mine in pieces:
                own = values[mine]
                read = self.clocks[p].read(own)
                # Zero stands for "never" and stays.
                out[mine] = read if own.all() else np.where(own == 0, 0, read)
            return self.store.scratch.column(out)

        return table | abreast(align, times, len(place))

    @cached_property
    def spans(self) -> Columns:
        """SPAN rows, start and stop aligned."""
        return self.read("span", "start", "stop")

    @cached_property
    def runs(self) -> Columns:
        """One row per attempt at a task, in the order in which they were assigned.

        Columns: run, place (the scheduler's), assigned, worker, cause, key, finished, status,
        nbytes, type, received, ready, start, stop, thread, cpu, wplace (the worker's place),
        seen (1 if the worker's own row is there; otherwise its times are the scheduler's).
        """
        runs = ended(ordered(self._joined), self.store.table("run"))
        del self._joined  # some of its columns are not those of `runs`, and take as much
        return {name: self.store.scratch.column(column) for name, column in runs.items()}

    @cached_property
    def _joined(self) -> Columns:
        rows = own_last(self.read("run", *_INSTANTS), self.store.places)
        rows = with_ongoing(rows, self.read("ongoing", *_INSTANTS))
        assign, finish = self.read("assign", "t"), self.read("finish", "t")
        if self._outside < 0:
            return attempts(assign, finish, rows)
        want, since = self.store.table("want"), self._extent(self._outside)[0]
        runs, self.keyless = with_those_before(assign, finish, want, rows, since)
        return runs

    @cached_property
    def at(self) -> Rows:
        """The rows of `runs` by the place of their worker."""
        return Rows(self.runs["wplace"])

    def forget(self) -> None:
        """Let go of what was made of the tables; who asks for it again has it made anew."""
        for name in ("at", "depends", "owners", "graph_rows", "constrained"):
            self.__dict__.pop(name, None)
        self._numbered.clear()

    @property
    def backward(self) -> int:
        """How many runs end before they begin, by their own clock; in `runs` they take no time."""
        rows = self.store.table("run")
        return int((rows["stop"] < rows["start"]).sum())

    @cached_property
    def depends(self) -> Depends:
        """What each run needed of other runs."""
        return depends(self)

    @cached_property
    def graphs(self) -> list[Graph]:
        """The graphs in the order of their arrival, each with its hand-over."""
        return graphs(self)

    @cached_property
    def owners(self) -> Ints:
        """Number of the graph of each run, at its scheduler; -1 if unknown."""
        return graph_of_runs(self)

    @cached_property
    def graph_rows(self) -> Ints:
        """The same as its index in `graphs`."""
        return row_of_graphs(self, self.owners)

    @cached_property
    def gil(self) -> Gil:
        """Who held the GIL of each process, and who waited for it."""
        return Gil(self)

    def runs_of(self, numbers: Ints, places: Ints) -> Ints:
        """Index in `runs` of each (number, scheduler's place); -1 for those that are not there."""
        at, found = lookup(self.runs["run"], self.runs["place"], numbers, places)
        return np.where(found, at, -1)

    @cached_property
    def constrained(self) -> dict[int, int]:
        """By run, an index: which resource of its worker it could not begin without, as a text."""
        table = self.store.table("resource")
        at, found = lookup(self.runs["run"], self.runs["wplace"], table["run"], table["place"])
        return dict(zip(at[found].tolist(), table["name"][found].tolist(), strict=True))

    def run_of(self, number: int, place: int) -> int:
        """The same for one run."""
        if place not in self._numbered:
            mine = np.flatnonzero(self.runs["place"] == place)
            order = mine[np.argsort(self.runs["run"][mine], kind="stable")]
            self._numbered[place] = self.runs["run"][order], order
        numbers, rows = self._numbered[place]
        i = int(np.searchsorted(numbers, number, side="right")) - 1
        return int(rows[i]) if i >= 0 and numbers[i] == number else -1

    # -- clocks and region ------------------------------------------------------------------

    def _reference(self) -> int:
        starts = self._named("region start")
        if len(starts):
            return int(self._marks["place"][starts[0]])
        roles = [place.role for place in self.store.places]
        return next((roles.index(r) for r in ("client", "scheduler") if r in roles), 0)

    def _named(self, name: str) -> Ints:
        strings = self.store.strings
        wanted = [i for i in present(self._marks["name"]) if strings[i] == name]
        return np.flatnonzero(np.isin(self._marks["name"], wanted))

    def marks(self, name: str) -> list[tuple[int, int, str]]:
        """(aligned time, place, label) of the marks of a name, in order."""
        m = self._marks
        rows = self._named(name)
        t = self.read("mark", "t")["t"][rows]
        places, labels = m["place"][rows], m["label"][rows]
        found = zip(t, places, labels, strict=True)
        return sorted((int(a), int(p), self.store.strings[int(i)]) for a, p, i in found)

    def _region(self, place: int) -> Region:
        starts, stops = self.marks("region start"), self.marks("region stop")
        if not starts:
            first, last = self._extent(place)
            return Region(first, last, 0, 0, place, attached=True)
        start, place, label = starts[0]
        lane, _, thread = label.partition(" ")
        end = [t for t, p, text in stops if p == place and text == lane and t >= start]
        stop = end[0] if end else max(self._extent(place)[1], start)
        return Region(start, stop, _lane(lane), _lane(thread or lane), place, ended=bool(end))

    def _extent(self, reference: int) -> tuple[int, int]:
        """From the first to the last instant that any place tells of.

        Without a client (a flight recording) what the scheduler tells of: a worker that was stuck
        may have been heard of last long before.
        """
        alone = "scheduler" in {p.role for p in self.store.places[reference : reference + 1]}
        first, last = [], []
        for p, origin in enumerate(self.store.origins):
            hosts = {self.store.places[i].host for i in (p, reference)}
            if (alone and p != reference) or (len(hosts) > 1 and not self.clocks[p].known):
                continue
            ends = np.array([origin.first_t, origin.last_t], np.int64)
            a, b = self.clocks[p].read(ends)
            first.append(int(a))
            last.append(int(b))
        return min(first, default=0), max(last, default=0)

    def bounds(self) -> Bounds:
        """By how much each worker's clock is early at least, and may be at most, ns."""
        workers = {i for i, place in enumerate(self.store.places) if place.role == "worker"}
        return bounds(self._joined, workers)

    def _by_causality(self, known: Bounds) -> None:
        """Shift workers' clocks."""
        shifts = {p: by for p, (least, latest) in known.items() if (by := shift(least, latest))}
        if not shifts:
            return
        runs, moved = self._joined, np.zeros(len(self.clocks) + 1, np.int64)
        for p, by in shifts.items():
            self.clocks[p].shift = moved[p] = by
        of_run = moved[of_workers(runs)]  # of those without a place, -1, the last
        for column in _INSTANTS:
            runs[column] += of_run


def _by_place(place: Ints) -> Iterator[tuple[int, Ints | slice]]:
    """Each place, and its rows; where there is one only, piece by piece."""
    if len(place) and place.min() == place.max():
        for first in range(0, len(place), _PIECE):
            yield int(place[0]), slice(first, first + _PIECE)
        return
    rows = Rows(place)
    for p in rows.numbers:
        yield p, rows.of(p)


def _lane(label: str) -> int:
    """A thread, or the negative number of an async region; 0 if the label is neither."""
    return max(number(label.removeprefix("-")), 0) * (-1 if label.startswith("-") else 1)


def present(small: Ints) -> list[int]:
    """The different values of a column of small numbers (-1 is left out), in order."""
    found: list[int] = np.flatnonzero(np.bincount(small[small >= 0])).tolist()
    return found


__all__ = ["LOCAL", "NO_CAUSE", "Columns", "Ints", "Region", "Timeline"]
