"""Tasks as boxes while a run goes on, in the order in which they become known.

A page that has the first n of them asks for what follows. What was told stays as it is: clocks are
known better later, but by less than can be seen; the pages made from a snapshot are exact.
"""

from __future__ import annotations

import threading
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from dask.utils import key_split
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import present
from stageprof_collectors.storage.alignment import Clock, align
from stageprof_collectors.storage.store import Store
from stageprof_collectors.tables.tasks import layer_of
from stageprof_collectors.text import LIMIT, safe
from stageprof_runtime.stage import STEP, STEPS, Stage
from stageprof_ui.columns.boxes import SUBROWS, Boxes, Row
from stageprof_ui.columns.lines import THREAD, Line
from stageprof_ui.columns.running import Delta, Given, Now, Open, Ran
from stageprof_ui.columns.series import numbered, worker_label
from stageprof_ui.columns.tables import Layer, Step, Tables
from stageprof_ui.palette import GIL_COLOURS, LAYER_COLOURS, OTHER_COLOUR, STAGE_COLOURS

#: So that twelve hours fit into 32 bits.
UNIT_NS: Final = 10_000
_MOST: Final = 2**32 - 1
#: Names of layers that are remembered; beyond, they are split again.
_REMEMBERED: Final = 100_000
#: More layers than these are one, the first: the browser numbers them with two bytes.
_LAYERS: Final = 2**16 - 1
#: Looks after which clocks are asked again.
_CLOCKS: Final = 10
#: Looks for which a task whose layer is not known yet is held back.
_PATIENCE: Final = 4
#: Tasks that run and are told of; threads that a worker may say that it has.
_SHOWN, _THREADS = 500, 256
_COMPUTE: Final = STEP["compute"]
#: What clocks may move by when they are compared anew, ns: up to half of a task that is short.
_MOVED_NS: Final = 1_000_000, 20_000_000


class Growth:
    """All that was told so far; looked at by several threads."""

    def __init__(self) -> None:
        #: one per row, and one per layer; the first layer is none
        self.lines: list[Line] = []
        self.layers: list[Layer] = [Layer("", "", "", len(LAYER_COLOURS) - 1)]
        #: tasks that run, the oldest first
        self.now: list[Now] = []
        #: ns since the start until which something is known
        self.end = 0
        self._lock = threading.Lock()
        self._row, self._start, self._length = array("I"), array("I"), array("I")
        self._layer = array("H")
        #: where each row ends, in units
        self._ends: list[int] = []
        #: of each thread its rows: coroutines overlap on their loop's thread
        self._rows: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        #: whether a task ended too late to be told of
        self.full = False
        self._clocks: list[Clock] = []
        self._origin = 0
        self._looks = 0
        self._read = {"assign": 0, "finish": 0, "run": 0, "mark": 0}
        self._names: dict[str, str] = {}
        self._labels: dict[int, str] = {}
        self._open = Open()
        #: threads of workers by their address
        self._threads: dict[str, int] = {}
        #: rows of each place, and those whose thread is not known yet
        self._of_place: defaultdict[int, list[int]] = defaultdict(list)
        self._spare: defaultdict[int, list[int]] = defaultdict(list)
        self._of_name: dict[str, int] = {}
        self._of_prefix: dict[str, int] = {}
        self._layer_of: dict[int, int] = {}
        self._held: list[Ran] = []

    def __len__(self) -> int:
        return len(self._row)

    # -- what pages ask for -----------------------------------------------------------------

    def since(self, first: int, most: int) -> Delta:
        """The boxes from `first` on, but not more than `most`."""
        with self._lock:
            part = slice(first, first + most)
            columns = (self._row[part], self._start[part], self._length[part])
            row, start, length = (np.array(column, np.uint32) for column in columns)
            layer = np.array(self._layer[part], np.uint16)
        return Delta(first, row, start, length, layer)

    def boxes(self) -> Boxes:
        """All of them, as a page begins with them."""
        new = self.since(0, len(self))
        lines = self.lines.copy()  # at least those of the boxes
        order = np.argsort(new.row, kind="stable")
        counts = np.bincount(new.row, minlength=len(lines))
        return Boxes(
            UNIT_NS,
            new.start[order],
            new.length[order],
            np.full(len(new.row), _COMPUTE, np.uint8),
            new.layer[order],
            np.zeros(len(new.row), np.uint8),
            np.full(len(new.row), -1, np.int32),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32),
            tuple(Row(line.label, -1, THREAD) for line in lines),
        )

    def tables(self) -> Tables:
        """What names and colours them."""
        return Tables(
            [Step(str(stage), name) for stage, name in STEPS],
            [str(stage) for stage in Stage],
            self.layers.copy(),
            {
                "layer": [*LAYER_COLOURS, OTHER_COLOUR],
                "stage": list(STAGE_COLOURS.values()),
                "gil": [*GIL_COLOURS, OTHER_COLOUR],
            },
            [],
        )

    # -- what is new ------------------------------------------------------------------------

    def look(self, store: Store) -> None:
        """Take in what a store has had since the last look; nobody may add to it meanwhile."""
        if not self._clocked(store):
            return
        self._name(store)
        self._assign(store)
        with self._lock:
            self._tell([*self._held, *self._ran(store)], store)
            self.now = list(self._running(store))

    def _new(self, store: Store, table: str) -> dict[str, NDArray[np.int64]]:
        rows = store.since(table, self._read[table])
        self._read[table] = store.rows(table)
        return rows

    def _clocked(self, store: Store) -> bool:
        """Whether clocks can be compared, which takes a client to compare them with."""
        roles = [place.role for place in store.places]
        if "client" not in roles:
            return False
        if len(self._clocks) != len(roles) or self._looks % _CLOCKS == 0:
            self._clocks = align(store, roles.index("client"))
        if not self._looks:
            self._origin = min(self._ends_of(store, "first_t"))
        self._looks += 1
        self.end = max(self._ends_of(store, "last_t")) - self._origin
        return True

    def _ends_of(self, store: Store, which: str) -> list[int]:
        ends = [np.array([getattr(origin, which)], np.int64) for origin in store.origins]
        return [int(clock.read(t)[0]) for clock, t in zip(self._clocks, ends, strict=True)]

    def _name(self, store: Store) -> None:
        """What workers are called, from the scheduler's marks."""
        marks = self._new(store, "mark")
        for name, label in zip(marks["name"].tolist(), marks["label"].tolist(), strict=True):
            if store.strings[name] == "worker seen":
                address, threads, _, called = [*store.strings[label].split(" ", 3), "", "", ""][:4]
                self._names[address] = called
                self._threads[address] = min(int(threads), _THREADS) if threads.isdecimal() else 1

    def _assign(self, store: Store) -> None:
        """Which layer each run is of: layers of one prefix are one here."""
        new = self._new(store, "assign")
        self._give(new, store)
        self._open.end(self._new(store, "finish")["run"].tolist())
        keys = store.keys(new["key"])
        for run, key in zip(new["run"].tolist(), keys, strict=True):
            name = layer_of(key)
            known = name in self._of_name
            self._layer_of[run] = self._of_name[name] if known else self._number(name)

    def _give(self, new: dict[str, NDArray[np.int64]], store: Store) -> None:
        t = new["t"].copy()
        for p in present(new["place"]):
            mine = new["place"] == p
            t[mine] = self._clocks[p].read(t[mine])
        workers = [store.strings[i] for i in new["worker"].tolist()]
        self._open.give(map(Given, new["run"].tolist(), t.tolist(), workers, new["key"].tolist()))

    def _running(self, store: Store) -> Iterator[Now]:
        """Tasks that run, each in a row of its worker in which no other does."""
        places = {p.name: i for i, p in enumerate(store.places) if p.role == "worker"}
        threads = {name: n for name, n in self._threads.items() if name in places}
        found = list(islice(self._open.running(threads), _SHOWN))
        taken: set[int] = set()
        for task, key in zip(found, store.keys([task.key for task in found]), strict=True):
            row = self._free(places[task.worker], taken, store)
            taken.add(row)
            since = task.since - self._origin
            begun = max(since // UNIT_NS, self._ends[row])
            if begun > _MOST:
                continue
            age = max(self.end - since, 0) / 1e9
            yield Now(row, begun, self._layer_of.get(task.run, 0), safe(key, limit=200), age)

    def _free(self, place: int, taken: set[int], store: Store) -> int:
        """The row of a worker that has been free for longest; a new one if none is."""
        if rows := [row for row in self._of_place[place] if row not in taken]:
            return min(rows, key=lambda row: self._ends[row])
        row = self._new_row(place, store)
        self._spare[place].append(row)
        return row

    def _number(self, name: str) -> int:
        prefix = key_split(name)
        number = self._of_prefix.get(prefix)
        if number is None and len(self.layers) < _LAYERS:
            number = self._of_prefix[prefix] = len(self.layers)
            shown = safe(prefix, limit=200)
            self.layers.append(Layer(shown, shown, "", min(number, len(LAYER_COLOURS)) - 1))
        if len(self._of_name) >= _REMEMBERED:
            self._of_name.clear()
        self._of_name[name] = number or 0
        return number or 0

    def _ran(self, store: Store) -> Iterator[Ran]:
        new = self._new(store, "run")
        place, start, stop = new["place"], new["start"].copy(), new["stop"].copy()
        for p in present(place):
            mine = place == p
            start[mine], stop[mine] = (self._clocks[p].read(t[mine]) for t in (start, stop))
        self._open.end(new["run"].tolist())
        columns = (new["run"], place, new["thread"], start, stop)
        return (Ran(*row) for row in zip(*(c.tolist() for c in columns), strict=True))

    def _tell(self, ran: Sequence[Ran], store: Store) -> None:
        """Add boxes; those of a thread in their order, so one that is held back holds the next."""
        self._held, held = [], set()
        for task in ran:
            row = self._row_of(task, store)
            known = task.run in self._layer_of
            if row in held or not (known or task.age >= _PATIENCE):
                held.add(row)
                self._held.append(task._replace(age=task.age + 1))
            else:
                self._add(row, task)

    def _add(self, row: int, task: Ran) -> None:
        start = max((task.start - self._origin) // UNIT_NS, self._ends[row])
        stop = max((task.stop - self._origin) // UNIT_NS, start)
        if stop > _MOST:  # after twelve hours; the pages made from a snapshot have coarser units
            self.full = True
            self._layer_of.pop(task.run, None)
            return
        self._row.append(row)
        self._start.append(start)
        self._length.append(stop - start)
        self._layer.append(self._layer_of.pop(task.run, 0))
        self._ends[row] = stop

    def _row_of(self, task: Ran, store: Store) -> int:
        """The first of its thread's rows that is free then; of too many at once one that is not."""
        rows = self._rows[task.place, task.thread]
        # Clocks that were compared anew may have moved by a little: that is no overlap.
        slack = int(np.clip((task.stop - task.start) // 2, *_MOVED_NS))
        begin = (task.start - self._origin + slack) // UNIT_NS
        row = next((row for row in rows if self._ends[row] <= begin), None)
        if row is None and len(rows) >= SUBROWS:
            row = min(rows, key=self._ends.__getitem__)
        if row is None:
            spare = self._spare[task.place]
            row = spare.pop(0) if spare else self._new_row(task.place, store)
            rows.append(row)
        return row

    def _new_row(self, place: int, store: Store) -> int:
        row, rows = len(self.lines), self._of_place[place]
        rows.append(row)
        if place not in self._labels:
            own = worker_label(store.places[place].name, self._names, LIMIT)
            self._labels[place] = numbered([*self._labels.values(), own])[-1]
        worker = self._labels[place]
        self.lines.append(Line(f"{worker}, thread {len(rows)}", (row,), 1.0, worker))
        self._ends.append(0)
        return row
