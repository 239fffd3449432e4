"""The table of embedded objects: what of the user's data travelled inside graphs, and its cost.

The client's dump of an object is measured. Of the later hops only the sum is measured: of a
graph's load by the scheduler, and of the dumps and loads of each layer's tasks. They are shared
over the objects in the graph or layer by what they should take there: the seconds of the client's
dump, and the time of copying their bytes. What is left is the graph's own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from stageprof_collectors.account.carriage import HOPS, Layers
from stageprof_collectors.account.timeline import LOCAL
from stageprof_collectors.tables.lines import UNKNOWN, Line, Lines
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Bytes that are copied in a second where their dump or load copies them. What a dump hands out
#: as buffers takes no time there, but is copied later on; this weighs it against slow pickling.
COPIED: Final = 1e9

COLUMNS: Final = [
    "number", "type", "nbytes", "copies", "tasks", "variable", "file", "line", "how", "layer",
    "used_file", "used_line", "graph_bytes", "sent_bytes", "dump_s", "load_s", "task_dump_s",
    "task_load_s", "total_s", "computation", "layers",
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


@dataclass
class _Held:
    """An object in one layer."""

    layer: str
    how: str
    #: tasks seen to hold it, 0: all of the layer
    seen: int
    tasks: int = 0
    sent: int = 0
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass
class _Object:
    """An object in one graph."""

    number: int
    type: str
    variable: str
    made: Line
    nbytes: int
    copies: int
    pieces: int
    dump_s: float
    #: when it was handed over (ns), the graph's bytes, and the row of `computations()`
    submitted: int
    graph_bytes: int
    computation: int
    #: the line that handed it over
    handed: Line
    held: list[_Held]
    lines: Lines
    load_s: float = 0.0

    @property
    def in_graph(self) -> int:
        """Bytes of it in the graph."""
        return self.nbytes * self.copies

    @property
    def weight(self) -> float:
        """Seconds that pickling it once, in all its copies, should take."""
        return self.dump_s + self.in_graph / COPIED

    def row(self) -> dict[str, Any]:
        """Its row of the table: of the layer that sent most of it."""
        main = max(self.held, key=lambda held: (held.sent, held.tasks))
        used = self.lines.of(main.layer)
        used = self.handed if used == UNKNOWN else used
        dump, load = (sum(h.seconds.get(s, 0.0) for h in self.held) for s in HOPS)
        return {
            "number": self.number, "type": self.type, "nbytes": self.nbytes,
            "copies": self.copies, "tasks": sum(h.tasks for h in self.held),
            "variable": self.variable, "file": self.made.file, "line": self.made.line,
            "how": main.how, "layer": main.layer, "used_file": used.file, "used_line": used.line,
            "graph_bytes": self.in_graph, "sent_bytes": sum(h.sent for h in self.held),
            "dump_s": self.dump_s, "load_s": self.load_s, "task_dump_s": dump,
            "task_load_s": load, "total_s": self.dump_s + self.load_s + dump + load,
            "computation": self.computation, "layers": [h.layer for h in self.held],
        }  # fmt: skip


# -- rows ---------------------------------------------------------------------------------------


def _found(recording: Recording) -> list[_Object]:
    """The objects of each graph, with the layers that hold them."""
    table, strings = recording.timeline.read("object", "t"), recording.store.strings
    rows: defaultdict[tuple[int, int, int, int], list[dict[str, int]]] = defaultdict(list)
    for i in range(len(table["t"])):
        row = {name: int(column[i]) for name, column in table.items()}
        at = row["t"] if row["graph"] < 0 else 0
        rows[row["place"], row["graph"], at, row["number"]].append(row)
    submits, lines = _Submits(recording), Lines(recording.store)
    return [_object(group, submits.of(group[0]), strings, lines) for group in rows.values()]


def _object(
    rows: list[dict[str, int]], submit: _Submit, strings: list[str], lines: Lines
) -> _Object:
    first = rows[0]
    return _Object(
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
        held=[_Held(strings[r["name"]], strings[r["how"]], r["tasks"]) for r in rows],
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
        frame = recording.computations()
        origin = recording.timeline.region.start
        self._began = np.asarray(frame["submitted_s"] * 1e9 + origin, dtype=float)

    def of(self, row: dict[str, int]) -> _Submit:
        """The hand-over of an object's graph."""
        table = self._table
        mine = table["place"] == row["place"]
        if row["graph"] < 0:  # the next one of a local scheduler
            mine &= (table["graph"] >= LOCAL) & (table["t"] >= row["t"])
        else:
            mine &= table["graph"] == row["graph"]
        at = np.flatnonzero(mine)
        if not len(at):
            return _Submit(row["t"], 0, -1, UNKNOWN)
        first = at[np.argmin(table["t"][at])]
        t = int(table["t"][first])
        away = np.abs(self._began - t)
        # Rows of computations are in seconds: a microsecond is more than their rounding.
        number = int(np.argmin(away)) if len(away) and away.min() < 1000 else -1
        line = Line(self._strings[table["file"][first]], int(table["line"][first]))
        return _Submit(t, int(table["nbytes"][first]), number, line)


# -- the scheduler's load of the graph ------------------------------------------------------------


def _loads(recording: Recording, found: list[_Object]) -> None:
    """Share the load of each graph over the objects in it."""
    dumps, loads = (_spans(recording, step) for step in ("graph.dump", "graph.load"))
    graphs: defaultdict[int, list[_Object]] = defaultdict(list)
    for thing in found:
        if thing.graph_bytes:
            graphs[thing.submitted].append(thing)
    for t, inside in graphs.items():
        # The message around a graph is dumped and loaded at the same steps, and is larger.
        nbytes = inside[0].graph_bytes
        dump = [s.seconds for s in dumps[nbytes] if s.start <= t][-1:]
        load = [s.seconds for s in loads[nbytes] if s.stop >= t][:1]
        things = sum(thing.weight for thing in inside)
        whole = max(sum(dump) + nbytes / COPIED, things, 1e-9)
        for thing in inside:
            thing.load_s = sum(load) * thing.weight / whole


class _Span(NamedTuple):
    """When a step began and ended (ns)."""

    start: int
    stop: int

    @property
    def seconds(self) -> float:
        return (self.stop - self.start) / 1e9


def _spans(recording: Recording, step: str) -> defaultdict[int, list[_Span]]:
    """A step's spans by the bytes that they made or read, in their order."""
    spans = recording.timeline.spans
    mine = spans["step"] == STEP[step]
    columns = (spans[name][mine].tolist() for name in ("start", "stop", "nbytes"))
    found: defaultdict[int, list[_Span]] = defaultdict(list)
    for start, stop, nbytes in sorted(zip(*columns, strict=True)):
        found[nbytes].append(_Span(start, stop))
    return found


# -- tasks --------------------------------------------------------------------------------------


def _tasks(recording: Recording, found: list[_Object]) -> None:
    """How many tasks of each layer held each object, and what their dumps and loads took."""
    layers = Layers(recording)
    inside: defaultdict[str, list[tuple[_Object, _Held]]] = defaultdict(list)
    for thing in found:
        for held in thing.held:
            held.tasks = held.seen or layers.runs(held.layer)
            each = thing.nbytes * max(1, thing.copies) // thing.pieces
            held.sent = each * held.tasks
            inside[held.layer].append((thing, held))
    for layer, pairs in inside.items():
        _share(layers, layer, pairs)


def _share(layers: Layers, layer: str, pairs: list[tuple[_Object, _Held]]) -> None:
    graphs = len({thing.submitted for thing, _ in pairs})
    for step in HOPS:
        took = layers.took(layer, step)
        if took.nbytes and step == "task.dump":
            for _, held in pairs:  # what was sent is known: slices of a frame are less than it
                held.sent = min(held.sent, took.nbytes // graphs)
        weights = [_task_weight(thing, held) for thing, held in pairs]
        rest = max(0, took.nbytes - sum(held.sent for _, held in pairs)) / COPIED
        whole = max(sum(weights) + rest, 1e-9)
        for (_, held), weight in zip(pairs, weights, strict=True):
            held.seconds[step] = took.seconds * weight / whole


def _task_weight(thing: _Object, held: _Held) -> float:
    """Seconds that pickling it with each of a layer's tasks should take."""
    return thing.dump_s * held.tasks / thing.pieces + held.sent / COPIED
