"""The table of embedded objects: what of the user's data travelled inside graphs, and its cost.

The client's dump of an object is measured. Of the later hops only the sum is measured: of a
graph's load by the scheduler, and of the dumps and loads of each layer's tasks. They are shared
over the objects in the graph or layer by what they should take there: the seconds of the client's
dump, and the time of copying their bytes. What is left is the graph's own. No object was sent with
more bytes than there was room for in the messages of the tasks that hold it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

from stageprof_collectors.account.carriage import HOPS, Layers
from stageprof_collectors.account.timeline import LOCAL
from stageprof_collectors.tables.lines import UNKNOWN, Line, Lines
from stageprof_collectors.tables.thing import COPIED, Held, Thing, is_cut
from stageprof_collectors.tables.unseen import complete, cut_short
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Data in layers whose messages had room for less than this share of them were not in those.
_ROOM: Final = 0.5
COLUMNS: Final = [
    "number", "type", "nbytes", "copies", "pieces", "tasks", "variable", "file", "line", "how",
    "layer", "used_file", "used_line", "graph_bytes", "sent_bytes", "dump_s", "load_s",
    "task_dump_s", "task_load_s", "total_s", "computation", "layers",
]  # fmt: skip


def objects(recording: Recording) -> pd.DataFrame:
    """See `Recording.objects`."""
    found = _found(recording)
    if found:
        _loads(recording, found)
        _tasks(recording, found)
    rows = [thing.row() for thing in found]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.sort_values(["total_s", "sent_bytes"], ascending=False, ignore_index=True)


# -- rows ---------------------------------------------------------------------------------------


def _found(recording: Recording) -> list[Thing]:
    """The objects of each graph, with the layers that hold them."""
    table, strings = recording.timeline.read("object", "t"), recording.store.strings
    rows: defaultdict[tuple[int, int, int, int], list[dict[str, int]]] = defaultdict(list)
    for i in range(len(table["t"])):
        row = {name: int(column[i]) for name, column in table.items()}
        at = row["t"] if row["graph"] < 0 else 0
        rows[row["place"], row["graph"], at, row["number"]].append(row)
    submits, lines = _Submits(recording), Lines(recording.store)
    cut = cut_short(recording)
    return [
        _object(
            group, submits.of(group[0]), strings, lines, cut=f"graph {group[0]['graph']}" in cut
        )
        for group in rows.values()
    ]


def _object(
    rows: list[dict[str, int]], submit: _Submit, strings: list[str], lines: Lines, *, cut: bool
) -> Thing:
    first = rows[0]
    return Thing(
        number=first["number"],
        type=strings[first["type"]],
        variable=strings[first["variable"]],
        made=Line(strings[first["file"]], first["line"]),
        nbytes=max(row["nbytes"] for row in rows),
        copies=sum(row["copies"] for row in rows),
        pieces=max(1, first["pieces"]),
        dump_s=sum(row["dump"] for row in rows) / 1e9,
        submitted=submit.t,
        graph_bytes=submit.nbytes,
        computation=submit.computation,
        handed=submit.line,
        cut=cut,
        held=[Held(strings[r["name"]], strings[r["how"]], r["tasks"]) for r in rows],
        lines=lines,
    )


class _Submit(NamedTuple):
    """One hand-over: when (ns), its bytes, the row of `computations()`, and the user's line."""

    t: int
    nbytes: int
    computation: int
    line: Line


class _Submits:
    """Which hand-over and computation a graph is."""

    def __init__(self, recording: Recording) -> None:
        self._table = recording.timeline.read("submit", "t")
        self._strings = recording.store.strings
        frame = recording.handed_over
        origin = recording.timeline.region.start
        began = np.asarray(frame["submitted_s"] * 1e9 + origin, dtype=float)
        self._number = np.argsort(began, kind="stable")
        self._began = began[self._number]
        #: by place and graph the first row; by place those of local schedulers
        self._first: dict[tuple[int, int], int] = {}
        self._local: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        columns = (self._table[name].tolist() for name in ("t", "place", "graph"))
        for i, (t, place, graph) in sorted(enumerate(zip(*columns, strict=True)), key=_in_time):
            self._first.setdefault((place, graph), i)
            if graph >= LOCAL:
                self._local[place].append((t, i))

    def of(self, row: dict[str, int]) -> _Submit:
        """The hand-over of an object's graph."""
        first = self._first.get((row["place"], row["graph"]), -1)
        if row["graph"] < 0:  # the next one of a local scheduler
            later = self._local[row["place"]]
            at = bisect_left(later, (row["t"], -1))
            first = later[at][1] if at < len(later) else -1
        if first < 0:
            return _Submit(row["t"], 0, -1, UNKNOWN)
        t, nbytes, file, number = (
            int(self._table[name][first]) for name in ("t", "nbytes", "file", "line")
        )
        return _Submit(t, nbytes, self._computation(t), Line(self._strings[file], number))

    def _computation(self, t: int) -> int:
        """The row of `computations()` that was handed over then; -1 if none was."""
        # They are in seconds: a microsecond is more than their rounding.
        near = slice(*np.searchsorted(self._began, [t - 1000.0, t + 1000.0]))
        away = zip(np.abs(self._began[near] - t).tolist(), self._number[near].tolist(), strict=True)
        return min(away, default=(0.0, -1))[1]


def _in_time(row: tuple[int, tuple[int, int, int]]) -> int:
    return row[1][0]


# -- the scheduler's load of the graph ------------------------------------------------------------


def _loads(recording: Recording, found: list[Thing]) -> None:
    """Share the load of each graph over the objects in it."""
    dumps, loads = (_spans(recording, step) for step in ("graph.dump", "graph.load"))
    graphs: defaultdict[int, list[Thing]] = defaultdict(list)
    for thing in found:
        if thing.graph_bytes:
            graphs[thing.submitted].append(thing)
    for t, inside in graphs.items():
        # The message around a graph is dumped and loaded at the same steps, and is larger.
        nbytes = inside[0].graph_bytes
        dump, load = dumps[nbytes].before(t), loads[nbytes].after(t)
        things = sum(thing.weight for thing in inside)
        whole = max(dump + nbytes / COPIED, things, 1e-9)
        for thing in inside:
            thing.load_s = load * thing.weight / whole


class _Spans:
    """Those of a step that made or read as many bytes, in their order (ns)."""

    def __init__(self) -> None:
        self._start: list[int] = []
        self._took: list[int] = []
        #: until when each and all before it went on
        self._until: list[int] = []

    def add(self, start: int, stop: int) -> None:
        """One more, that began no earlier."""
        self._start.append(start)
        self._took.append(stop - start)
        self._until.append(max(stop, self._until[-1]) if self._until else stop)

    def before(self, t: int) -> float:
        """Seconds of the last one that had begun; 0 if none had."""
        i = bisect_right(self._start, t)
        return self._took[i - 1] / 1e9 if i else 0.0

    def after(self, t: int) -> float:
        """Seconds of the first one that had not ended; 0 if all had."""
        i = bisect_left(self._until, t)
        return self._took[i] / 1e9 if i < len(self._took) else 0.0


def _spans(recording: Recording, step: str) -> defaultdict[int, _Spans]:
    """A step's spans by the bytes that they made or read."""
    spans = recording.timeline.spans
    mine = spans["step"] == STEP[step]
    columns = (spans[name][mine].tolist() for name in ("start", "stop", "nbytes"))
    found: defaultdict[int, _Spans] = defaultdict(_Spans)
    for start, stop, nbytes in sorted(zip(*columns, strict=True)):
        found[nbytes].add(start, stop)
    return found


# -- tasks --------------------------------------------------------------------------------------


def _tasks(recording: Recording, found: list[Thing]) -> None:
    """How many tasks of each layer held each object, and what their dumps and loads took."""
    layers = Layers(recording)
    complete(recording, layers, found)
    _find_carriers(layers, found)
    inside: defaultdict[str, list[tuple[Thing, Held]]] = defaultdict(list)
    graphs = Counter((thing.number, held.layer) for thing in found for held in thing.held)
    for thing in found:
        for held in thing.held:
            held.tasks = held.seen or layers.runs(held.layer) // graphs[thing.number, held.layer]
            each = thing.nbytes * max(1, thing.copies) // thing.pieces
            held.sent = each * held.tasks
            inside[held.layer].append((thing, held))
    for layer, pairs in inside.items():
        _share(layers, layer, pairs)
    for thing in found:
        thing.settle()


def _find_carriers(layers: Layers, found: list[Thing]) -> None:
    """Layers that held an object and were fused with others are those whose messages are as large.

    Fusing may leave nothing of their names, and the line may be another.
    """
    known: Counter[str] = Counter()
    lost: dict[tuple[int, str], list[Held]] = {}
    sizes = {thing.number: thing.nbytes for thing in found}
    for thing in found:
        for held in thing.held:
            if held.seen or is_cut(held.how) or layers.runs(held.layer) or not held.layer:
                known[held.layer] += thing.nbytes
            else:  # each compute of a collection tells of it anew
                lost.setdefault((thing.number, held.layer), []).append(held)
    rooms = layers.rooms(known)
    for (number, layer), some in sorted(lost.items(), key=lambda item: -sizes[item[0][0]]):
        carrier = rooms.take(sizes[number]) or layer
        for held in some:
            held.layer = carrier


def _share(layers: Layers, layer: str, pairs: list[tuple[Thing, Held]]) -> None:
    for step in HOPS:
        took = layers.took(layer, step)
        if took.nbytes and step == "task.dump":
            _fit(took.nbytes, pairs)
        weights = [_task_weight(thing, held) for thing, held in pairs]
        rest = max(0, took.nbytes - sum(held.sent for _, held in pairs)) / COPIED
        whole = max(sum(weights) + rest, 1e-9)
        for (_, held), weight in zip(pairs, weights, strict=True):
            held.seconds[step] = took.seconds * weight / whole


def _fit(nbytes: int, pairs: list[tuple[Thing, Held]]) -> None:
    """Bytes sent are known, and each object has its part of them: slices are less than a frame.

    The small ones first, whose bytes are surer than those of what is cut; data last.
    """
    graphs = {thing.submitted for thing, _ in pairs}
    room = dict.fromkeys(graphs, nbytes // len(graphs))
    for thing, held in sorted(pairs, key=lambda pair: (pair[1].datum, pair[1].sent)):
        wanted, held.sent = held.sent, min(held.sent, room[thing.submitted])
        room[thing.submitted] -= held.sent
        if held.datum and thing.shared and held.sent < _ROOM * wanted:
            held.tasks = held.sent = 0


def _task_weight(thing: Thing, held: Held) -> float:
    """Seconds that pickling it with each of a layer's tasks should take."""
    return thing.dump_s * held.tasks / thing.pieces + held.sent / COPIED
