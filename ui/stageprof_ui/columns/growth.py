"""Tasks as boxes while a run goes on, in the order in which they become known.

A page that has the first n of them asks for what follows. What was told stays as it is: clocks are
known better later, but by less than can be seen; the pages made from a snapshot are exact.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from dask.utils import key_split
from numpy.typing import NDArray

from stageprof_collectors.storage.store import Store
from stageprof_collectors.tables.tasks import layer_of
from stageprof_collectors.text import safe
from stageprof_runtime.stage import STEP, STEPS, Stage
from stageprof_ui.columns.boxes import Boxes, Row
from stageprof_ui.columns.clocks import Clocks
from stageprof_ui.columns.lines import THREAD, Line
from stageprof_ui.columns.running import Delta, Given, Now, Open, Ran
from stageprof_ui.columns.tables import Layer, Step, Tables
from stageprof_ui.columns.tracks import Tracks
from stageprof_ui.palette import GIL_COLOURS, LAYER_COLOURS, OTHER_COLOUR, STAGE_COLOURS

#: So that twelve hours fit into 32 bits.
UNIT_NS: Final = 10_000
_MOST: Final = 2**32 - 1
#: Names of layers that are remembered; beyond, they are split again.
_REMEMBERED: Final = 100_000
#: More layers than these are one, the first: the browser numbers them with two bytes.
_LAYERS: Final = 2**16 - 1
#: Looks for which a task whose layer is not known yet is held back, and a guess at one of a worker
#: that may tell of it yet; and after which it is said that clocks are not known.
_PATIENCE: Final = 4
#: Tasks that run and are told of; threads that a worker may say that it has.
_SHOWN, _THREADS = 500, 256
_COMPUTE: Final = STEP["compute"]
#: What clocks may move by when they are compared anew, ns: up to half of a task that is short.
_MOVED_NS: Final = 1_000_000, 20_000_000


class Growth:
    """All that was told so far; looked at by several threads."""

    def __init__(self) -> None:
        #: one per layer; the first is none
        self.layers: list[Layer] = [Layer("", "", "", len(LAYER_COLOURS) - 1)]
        #: tasks that run, the oldest first
        self.now: list[Now] = []
        self._lock = threading.Lock()
        self._row, self._start, self._length = array("I"), array("I"), array("I")
        self._layer = array("H")
        #: whether a task ended too late to be told of; how many overlapped too many others
        self.full, self.crowded = False, 0
        self._clocks = Clocks()
        #: looks in a row at which something could not be told because clocks are not known
        self._unread = 0
        self._read = {"assign": 0, "finish": 0, "run": 0, "mark": 0}
        #: what is not read yet of tasks that ended
        self._untimed: dict[str, NDArray[np.int64]] = {}
        self._names: dict[str, str] = {}
        self._tracks = Tracks(self._names)
        self._open = Open()
        #: threads of workers by their address
        self._threads: dict[str, int] = {}
        self._of_name: dict[str, int] = {}
        self._of_prefix: dict[str, int] = {}
        self._layer_of: dict[int, int] = {}
        self._held: list[Ran] = []

    def __len__(self) -> int:
        return len(self._row)

    @property
    def lines(self) -> list[Line]:
        """One per row."""
        return self._tracks.lines

    @property
    def end(self) -> int:
        """Ns since the start until which something is known."""
        return self._clocks.end

    @property
    def untimed(self) -> bool:
        """Whether tasks have been held back for a while because clocks are not known."""
        return self._unread > _PATIENCE

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
        if not self._clocks.look(store):
            self._unread += bool(store.rows("assign"))
            return
        self._name(store)
        self._assign(store)
        with self._lock:
            told = {place.name for place in store.places if place.role == "worker"}
            self._tell([*self._held, *self._ran(store)], store, told)
            self.now = list(self._running(store))
        self._unread = self._unread + 1 if len(self._untimed["run"]) else 0

    def _new(self, store: Store, table: str) -> dict[str, NDArray[np.int64]]:
        rows = store.since(table, self._read[table])
        self._read[table] = store.rows(table)
        return rows

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
        t = self._clocks.read(new["t"], new["place"])
        workers = [store.strings[i] for i in new["worker"].tolist()]
        self._open.give(map(Given, new["run"].tolist(), t.tolist(), workers, new["key"].tolist()))

    def _running(self, store: Store) -> Iterator[Now]:
        """Tasks that run, each in a row of its worker in which no other does."""
        places = {p.name: i for i, p in enumerate(store.places) if p.role == "worker"}
        threads = {name: n for name, n in self._threads.items() if name in places}
        found = list(islice(self._open.running(threads), _SHOWN))
        taken: set[int] = set()
        for task, key in zip(found, store.keys([task.key for task in found]), strict=True):
            row = self._tracks.free(places[task.worker], taken, store)
            taken.add(row)
            since = task.since - self._clocks.origin
            begun = max(since // UNIT_NS, self._tracks.ends[row])
            if begun > _MOST:
                continue
            age = max(self.end - since, 0) / 1e9
            yield Now(row, begun, self._layer_of.get(task.run, 0), safe(key, limit=200), age)

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
        """What ended and can be told of: where the clock is known by which it did."""
        new = self._new(store, "run")
        self._open.end(new["run"].tolist())
        if self._untimed:
            new = {name: np.append(rows, new[name]) for name, rows in self._untimed.items()}
        timed = self._clocks.timed(new["place"])
        self._untimed = {name: column[~timed] for name, column in new.items()}
        new = {name: column[timed] for name, column in new.items()}
        roles = [place.role for place in store.places]
        guessed = np.isin(new["place"], [i for i, r in enumerate(roles) if r == "scheduler"])
        thread = np.where(guessed, new["worker"], new["thread"])
        start, stop = (self._clocks.read(new[name], new["place"]) for name in ("start", "stop"))
        columns = (new["run"], new["place"], thread, start, stop, guessed)
        return (Ran(*row) for row in zip(*(c.tolist() for c in columns), strict=True))

    def _tell(self, ran: Sequence[Ran], store: Store, told: Collection[str]) -> None:
        """Add boxes; those of a thread in their order, so one that is held back holds the next.

        Args:
            ran: tasks, with those that were held back.
            store: what they are of.
            told: the workers that tell of their own tasks; what was guessed of these is dropped.
        """
        self._held, held = [], set[tuple[int, int]]()
        for task in ran:
            if task.guessed and store.strings[task.thread] in told:
                continue
            thread = task.place, task.thread
            if thread in held or self._too_early(task):
                held.add(thread)
                self._held.append(task._replace(age=task.age + 1))
            else:
                self._add(task, store)

    def _too_early(self, task: Ran) -> bool:
        """Whether more may be known of it soon: its layer, or that its worker tells of its own."""
        known = task.run in self._layer_of and (not task.guessed or self._tracks.knows(task))
        return not known and task.age < _PATIENCE

    def _add(self, task: Ran, store: Store) -> None:
        layer, origin = self._layer_of.pop(task.run, 0), self._clocks.origin
        # Clocks that were compared anew may have moved by a little: that is no overlap.
        slack = int(np.clip((task.stop - task.start) // 2, *_MOVED_NS))
        row = self._tracks.of(task, (task.start - origin + slack) // UNIT_NS, store)
        if row is None:
            self.crowded += 1
            return
        start = max((task.start - origin) // UNIT_NS, self._tracks.ends[row])
        stop = max((task.stop - origin) // UNIT_NS, start)
        if stop > _MOST:  # after twelve hours; the pages made from a snapshot have coarser units
            self.full = True
            return
        self._row.append(row)
        self._start.append(start)
        self._length.append(stop - start)
        self._layer.append(layer)
        self._tracks.ends[row] = stop
