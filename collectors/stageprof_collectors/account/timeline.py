"""A recording on one clock: spans, runs, graphs and blocks as aligned columns.

Everything before this writes events in each place's own time; everything after reads this.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.depend import Depends, depends
from stageprof_collectors.account.graph import Graph, graphs
from stageprof_collectors.profiles.gil import Gil
from stageprof_collectors.storage.alignment import Clock, align
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.storage.store import Store
from stageprof_collectors.tables.cells import rename
from stageprof_runtime.cells import MARK_NAME
from stageprof_runtime.event import NO_CAUSE, STATUS

Ints = NDArray[np.int64]
Columns = dict[str, Ints]
#: Place -> by how much its clock is early at least, and may be at most (None: unknown), ns.
Bounds = dict[int, tuple[int, int | None]]

#: Runs of local schedulers are numbered from here on.
LOCAL = 2**40
_WORKER_SHIFT = 42
_RELEASED = STATUS.index("released")


@dataclass(frozen=True)
class Region:
    """What is accounted: from `start` to `stop` (ns, the client's clock) of one lane.

    `lane` is the thread that entered, or the negative number of an async region; `thread` is
    the thread either way; `place` the index of the client. `attached` when there was no region:
    a cluster recorded from outside.
    """

    start: int
    stop: int
    lane: int
    thread: int
    place: int
    attached: bool = False


class Timeline:
    """The tables of a store, with all times on the clock of the region's place."""

    def __init__(self, store: Store, bounds: Bounds | None = None) -> None:
        self.store = store
        self._marks = store.table("mark")
        self._numbered: dict[int, tuple[Ints, Ints]] = {}
        reference = self._reference()
        self.clocks: list[Clock] = align(store, reference)
        self._by_causality(self.bounds() if bounds is None else bounds)
        self.region = self._region(reference)
        rename(store.strings, (label for _, _, label in self.marks(MARK_NAME)))

    # -- tables -----------------------------------------------------------------------------

    def read(self, name: str, *times: str) -> Columns:
        """A table with the named columns on the common clock."""
        table: Columns = dict(self.store.table(name))
        place = table["place"]
        aligned = {column: table[column].copy() for column in times}
        rows = Rows(place)
        for p in rows.numbers:
            mine = rows.of(p)
            for column, out in aligned.items():
                own = table[column][mine]
                read = self.clocks[p].read(own)
                # Zero stands for "never" and stays.
                out[mine] = read if own.all() else np.where(own == 0, 0, read)
        return table | aligned

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
        return _clamped(self._joined)

    @cached_property
    def _joined(self) -> Columns:
        runs = self.read("assign", "t")
        runs["assigned"] = runs.pop("t")
        runs |= _finished(runs, self.read("finish", "t"))
        return runs | _worked(runs, self.read("run", "received", "ready", "start", "stop"))

    @cached_property
    def at(self) -> Rows:
        """The rows of `runs` by the place of their worker."""
        return Rows(self.runs["wplace"])

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
    def gil(self) -> Gil:
        """Who held the GIL of each process, and who waited for it."""
        return Gil(self)

    def runs_of(self, numbers: Ints, places: Ints) -> Ints:
        """Index in `runs` of each (number, scheduler's place); -1 for those that are not there."""
        at, found = _lookup(self.runs["run"], self.runs["place"], numbers, places)
        return np.where(found, at, -1)

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
        return Region(start, stop, int(lane), int(thread or lane), place)

    def _extent(self, reference: int) -> tuple[int, int]:
        """From the first to the last instant that any place tells of.

        Without a client (a flight recording) what the scheduler tells of: a worker that was stuck
        may have been heard of last long before.
        """
        alone = "scheduler" in {p.role for p in self.store.places[reference : reference + 1]}
        first, last = [], []
        for p, origin in enumerate(self.store.origins):
            if alone and p != reference:
                continue
            ends = np.array([origin.first_t, origin.last_t], np.int64)
            a, b = self.clocks[p].read(ends)
            first.append(int(a))
            last.append(int(b))
        return min(first, default=0), max(last, default=0)

    def bounds(self) -> Bounds:
        """Of each worker's place by how much its clock is early at least, and may be at most, ns.

        A task cannot come before it was assigned, nor be reported before it ended.
        """
        runs = self._joined
        early, late = runs["assigned"] - runs["received"], runs["finished"] - runs["stop"]
        wplace = np.where(runs["seen"] == 1, runs["wplace"], -1)
        found: Bounds = {}
        rows = Rows(wplace)
        for p in rows.numbers:
            if self.store.places[p].role != "worker":
                continue
            mine = rows.of(p)
            done = late[mine][runs["finished"][mine] > 0]
            found[p] = int(early[mine].max()), int(done.min()) if len(done) else None
        return found

    def _by_causality(self, bounds: Bounds) -> None:
        """Shift workers' clocks by as little as makes no task start before it was assigned."""
        runs = self._joined
        rows = Rows(np.where(runs["seen"] == 1, runs["wplace"], -1))
        for p, (least, latest) in bounds.items():
            most = least if latest is None else latest
            shift = min(max(0, least), most) if least <= most else 0
            if shift:
                mine = rows.of(p)
                self.clocks[p].shift = shift
                for column in ("received", "ready", "start", "stop"):
                    runs[column][mine] += shift


def _finished(runs: Columns, finish: Columns) -> Columns:
    """Columns of FINISH for each run; 0 and status -1 where it never ended."""
    at, found = _lookup(finish["run"], finish["place"], runs["run"], runs["place"])
    out = {"finished": np.where(found, finish["t"][at], 0) if len(finish["t"]) else _zeros(runs)}
    for name in ("status", "nbytes", "type"):
        values = finish[name][at] if len(finish["t"]) else _zeros(runs)
        out[name] = np.where(found, values, -1 if name == "status" else 0)
    return out


def _worked(runs: Columns, rows: Columns) -> Columns:
    """Columns of RUN for each run; the scheduler's own times where the worker told nothing."""
    n = len(runs["run"])
    names = ("received", "ready", "start", "stop", "thread", "cpu")
    if not len(rows["run"]):
        at, found = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    else:
        at, found = _lookup(rows["run"], rows["worker"], runs["run"], runs["worker"])
        local = runs["run"] >= LOCAL
        if local.any():  # a local task is assigned to no process in particular
            zero = np.zeros(len(rows["run"]), np.int64)
            at2, found2 = _lookup(rows["run"], zero, runs["run"], np.zeros(n, np.int64))
            at, found = np.where(local, at2, at), np.where(local, found2, found)
    out = {k: (rows[k][at] if len(rows["run"]) else np.zeros(n, np.int64)) for k in names}
    wplace = rows["place"][at] if len(rows["run"]) else np.full(n, -1)
    out["wplace"] = np.where(found, wplace, -1)
    end = np.where(runs["finished"] > 0, runs["finished"], runs["assigned"])
    for k in ("received", "ready", "start"):
        out[k] = np.where(found, out[k], runs["assigned"])
    out["stop"] = np.where(found, out["stop"], end)
    # Taken back before it ran (stolen, cancelled): it only waited there.
    waited = ~found & (runs["status"] == _RELEASED)
    out["start"] = np.where(waited, out["stop"], out["start"])
    out["seen"] = found.astype(np.int64)
    return out


def _lookup(keys: Ints, keys2: Ints, wanted: Ints, wanted2: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """For each wanted pair the index of its last row, and whether there is one."""
    if not len(keys) or not len(wanted):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at, found = _by_number(keys, wanted)
    if found.all() and (keys2[at] == wanted2).all():
        return at, found
    have = keys + (keys2 << _WORKER_SHIFT)
    want = wanted + (wanted2 << _WORKER_SHIFT)
    order = np.argsort(have, kind="stable")
    at = np.searchsorted(have[order], want, side="right") - 1
    at = order[np.maximum(at, 0)]
    return at, have[at] == want


def _by_number(keys: Ints, wanted: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The same by the first number alone: runs are numbered densely, so a table will do."""
    low, high = int(keys.min()), int(keys.max())
    if high - low > 8 * len(keys) + 1024:
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    table = np.full(high - low + 1, -1, np.int64)
    table[keys - low] = np.arange(len(keys))
    inside = (wanted >= low) & (wanted <= high)
    at = table[np.where(inside, wanted - low, 0)]
    found = inside & (at >= 0)
    return np.maximum(at, 0), found


def present(small: Ints) -> list[int]:
    """The different values of a column of small numbers (-1 is left out), in order."""
    found: list[int] = np.flatnonzero(np.bincount(small[small >= 0])).tolist()
    return found


def _zeros(runs: Columns) -> Ints:
    return np.zeros(len(runs["run"]), np.int64)


def _clamped(runs: Columns) -> Columns:
    """What alignment leaves of impossible orders is put right run by run."""
    runs["received"] = np.maximum(runs["received"], runs["assigned"])
    ended = runs["finished"] > 0
    runs["stop"] = np.where(ended, np.minimum(runs["stop"], runs["finished"]), runs["stop"])
    runs["stop"] = np.maximum(runs["stop"], runs["received"])
    runs["start"] = np.clip(runs["start"], runs["received"], runs["stop"])
    runs["ready"] = np.clip(runs["ready"], runs["received"], runs["start"])
    if (np.diff(runs["assigned"]) >= 0).all():
        return runs
    order = np.argsort(runs["assigned"], kind="stable")
    return {name: column[order] for name, column in runs.items()}


__all__ = ["LOCAL", "NO_CAUSE", "Bounds", "Columns", "Ints", "Region", "Timeline"]
