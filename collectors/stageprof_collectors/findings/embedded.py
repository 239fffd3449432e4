"""Embedded objects as causes: what they are, and which of them are values of one variable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from stageprof_collectors.findings.calling import FUTURES_KEY
from stageprof_collectors.findings.fetched import fetched
from stageprof_collectors.tables.thing import OUTSIDE, is_cut
from stageprof_runtime.holding import DATUM
from stageprof_runtime.wording import MAP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What is in pieces is sent with no more than this much of itself: keys and indices are beside it.
_PIECES: Final = 1.5

#: Bytes a second below which it is not the bytes that take the time: arrays are copied at some
#: thousand million a second, texts pickled at some hundred million.
SLOW_BYTES_S: Final = 100e6
#: What is told of takes this share of the wall time to pickle, or is so many bytes in the graph or
#: sent, where Dask warns, too.
HEAVY: Final = 0.01
HEAVY_BYTES: Final = 10_000_000
#: Seconds of pickling one copy, below which nobody minds.
SLOW_S: Final = 0.01

#: How it is held if a `functools.partial` has it for an argument.
_BOUND: Final = " of partial("


@dataclass(frozen=True)
class Embedded:
    """An object, over all graphs and layers that it was in. Seconds are busy ones, of all hops."""

    number: int
    type: str
    variable: str
    file: str
    line: int
    how: str
    used_file: str
    used_line: int
    layers: frozenset[str]
    nbytes: int
    copies: int
    tasks: int
    graph_bytes: int
    sent_bytes: int
    dump_s: float
    load_s: float
    total_s: float
    #: into how many it was cut in a graph
    pieces: int = 1
    #: graphs that it was in
    graphs: int = 1
    #: how many there are of them, if they are values that one variable had one after another; then
    #: bytes and seconds are those of all
    many: int = 1
    #: of which key it is the result that the client had fetched; "" of none
    key: str = ""

    @property
    def apart(self) -> bool:
        """Whether it is no call's argument, or each call has a piece of its own.

        Then it travels once with each graph.
        """
        own = self.how == DATUM or is_cut(self.how) or self.pieces > 1
        once = self.sent_bytes <= _PIECES * self.nbytes * self.graphs
        return own and once and self.copies <= self.graphs

    @property
    def outside(self) -> bool:
        """Whether a function has it from outside: there Dask does not look for what it computes."""
        return self.how.startswith(OUTSIDE) or _BOUND in self.how

    @property
    def once(self) -> bool:
        """Whether it travels once and no more."""
        return self.apart and self.graphs == 1

    @property
    def cause(self) -> str:
        """One cause for all rules that see the same object."""
        return f"object:{self.number}"

    @property
    def alone(self) -> bool:
        """Whether of each there is but one task that has it, in all graphs."""
        return 0 < self.tasks <= self.many and not is_cut(self.how)

    @property
    def shared(self) -> bool:
        """Whether several tasks have the same whole object."""
        return self.tasks > 1 and not self.apart and not self.alone

    @property
    def each_dump_s(self) -> float:
        """Seconds of pickling one copy of one of them."""
        return self.dump_s / (max(self.copies, 1) * self.many)

    @property
    def slow_for_its_bytes(self) -> bool:
        """Whether its pickling takes longer than its bytes explain."""
        slow = self.each_dump_s >= SLOW_S
        return slow and self.dump_s * SLOW_BYTES_S > max(self.graph_bytes, self.nbytes)

    @property
    def each_bytes(self) -> float:
        """Bytes of it in one task."""
        return self.sent_bytes / max(self.tasks, 1)


def embedded(recording: Recording) -> list[Embedded]:
    """The objects of a recording, costliest first; costs nothing where there is none."""
    if not recording.store.rows("object"):
        return []
    table = recording.objects()
    names = [name for name in Embedded.__dataclass_fields__ if name in table]
    rows = zip(*(table[name] for name in names), strict=True)
    grouped: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        values = dict(zip(names, row, strict=True))
        grouped[int(values["number"])].append(values)
    keys = {number: key for (_, number), key in fetched(recording, scattered=False).items()}
    things = _alike(_one(some, keys) for some in grouped.values())
    return sorted(things, key=lambda e: -e.total_s)


def _one(rows: list[dict[str, Any]], keys: dict[int, str]) -> Embedded:
    """One object of its rows: one for each graph."""
    main = max(rows, key=lambda row: (row["sent_bytes"], row["how"] != DATUM))
    whole = {name: sum(row[name] for row in rows) for name in (*_SUMS, "copies")}
    layers = frozenset(name for row in rows for name in row["layers"])
    key = keys.get(int(main["number"]), "")
    return Embedded(**{**main, **whole, "layers": layers, "graphs": len(rows), "key": key})


_SUMS: Final = ("tasks", "graph_bytes", "sent_bytes", "dump_s", "load_s", "total_s")


def _alike(things: Iterable[Embedded]) -> Iterator[Embedded]:
    """Values that a variable had one after another, each in one task, are told together."""
    series: defaultdict[tuple[object, ...], list[Embedded]] = defaultdict(list)
    for thing in things:
        if not thing.alone:
            yield thing
            continue
        made, used = (thing.file, thing.line), (thing.used_file, thing.used_line)
        series[thing.variable, thing.type, thing.how, made, used].append(thing)
    yield from map(together, series.values())


def together(things: Sequence[Embedded]) -> Embedded:
    """All of them as one; what they are called is what the first is called."""
    whole = {name: sum(getattr(thing, name) for thing in things) for name in (*_SUMS, "nbytes")}
    return replace(
        things[0],
        **whole,
        layers=frozenset(name for thing in things for name in thing.layers),
        copies=max(thing.copies for thing in things),
        graphs=max(thing.graphs for thing in things),
        many=sum(thing.many for thing in things),
        key=max(thing.key for thing in things),
    )


def is_mapped(how: str) -> bool:
    """Whether it was given to `map` of a client."""
    return how.endswith(f" of {MAP}")


def by_futures(recording: Recording, thing: Embedded) -> bool:
    """Whether it was given to `submit` or `map`; maybe to others as well."""
    if is_mapped(thing.how):
        return True
    keys = recording.store.keys(recording.timeline.runs["key"])
    return any(FUTURES_KEY.fullmatch(key) for key in thing.layers.intersection(keys))


def in_graphs_of_one(recording: Recording, thing: Embedded) -> bool:
    """Whether a graph that it was in had no other task: what is submitted has none."""
    objects, graphs = recording.objects(), recording.handed_over
    mine = objects["computation"][objects["number"] == thing.number]
    return bool((graphs["graph_tasks"].reindex(mine) == 1).any())
