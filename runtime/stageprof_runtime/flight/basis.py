"""What places told once and later batches rely on: the basis of a segment.

A recording that begins in the middle of a cluster's life lacks what was said before: who the
workers are, the places in their trees of stacks, which runs were under way. The flight recorder
reads each batch as it writes it, on its own thread, and begins every segment with what is still
true then, as one batch for each place.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgpack

from stageprof_runtime.batch import Row, pack
from stageprof_runtime.event import (
    ASSIGN,
    COLUMN,
    FIELDS,
    GRAPH,
    LINE,
    MARK,
    NODE,
    SAMPLE,
    TABLES,
    TEXT,
    Place,
)

#: Marks that say how something is, not only that something happened.
LASTING: Final = frozenset(
    {
        "worker seen", "worker name", "worker paused", "not instrumented", "loop thread", "thread",
        "hook disabled", "gil source", "gil holders",
    }
)  # fmt: skip
#: Samples that a place tells once begin so.
FACTS: Final = "worker."
#: Tables that are told once for each name, or for each column of frames of a name: by what else.
ONCE: Final = {LINE: "prefix", COLUMN: "label"}
#: Of one place: lasting marks, rows that are told once, the latest, and runs under way; of all:
#: places in trees, 40 bytes each.
MARKS: Final = 10_000
LATEST: Final = 10_000
RUNS: Final = 100_000
NODES: Final = 500_000

Batch = dict[str, Any]


class Basis:
    """Everything that holds at the end of the batches that were absorbed."""

    def __init__(self) -> None:
        self._known: dict[Place, _Known] = {}
        #: workers that have left; what is still known of them is forgotten at the next turn
        self._left: set[Place] = set()
        self._nodes = 0

    def absorb(self, packed: bytes) -> None:
        """Learn from one batch, as shipped.

        Raises:
            ValueError, KeyError, TypeError: it is no batch.
        """
        batch: Batch = msgpack.unpackb(
            packed, strict_map_key=False, unicode_errors="surrogatepass", use_list=True
        )
        place = Place(*batch["place"])
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = _Known(place)
        known.state = {name: batch[name] for name in ("seq", "t", "drops", "cost", "counts")}
        known.learn(batch)
        if self._nodes < NODES:
            self._nodes += known.grow(batch)
        if known.gone:
            self._left.update(p for p in self._known if p.name in known.gone)
            known.gone.clear()

    def batches(self, *, stacks: bool = True) -> Iterator[bytes]:
        """What is known now, one batch for each place; its number is that of the last absorbed."""
        for known in self._known.values():
            yield known.batch(stacks=stacks)

    def turn(self) -> None:
        """Forget the workers that have left: a segment begins that knows nothing of them."""
        for place in self._left & self._known.keys():
            self._nodes -= len(self._known.pop(place).nodes) // len(FIELDS[NODE])
        self._left.clear()


class _Known:
    """What is known of one place."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.state: dict[str, Any] = {}
        self.nodes = array("q")
        #: addresses of workers that the place said have left
        self.gone: list[str] = []
        self._marks: dict[tuple[str, str], int] = {}
        self._facts: dict[str, tuple[int, float]] = {}
        #: table -> (name, what else) -> the row
        self._once: dict[int, dict[tuple[Any, ...], Row]] = {table: {} for table in ONCE}
        self._runs: dict[int, Row] = {}
        self._graph: Row | None = None
        self._texts: dict[str, int] = {}

    def learn(self, batch: Batch) -> None:
        """Marks, facts, what is told once, and of a scheduler the runs under way."""
        strings = batch["strings"]
        for t, name, label in rows(batch, MARK):
            self._mark(t, strings[name], strings[label])
        facts = {i for i, text in enumerate(strings) if text.startswith(FACTS)}
        if facts:
            told = (row for row in rows(batch, SAMPLE) if row[1] in facts)
            self._facts |= {strings[name]: (t, value) for t, name, value in told}
        for table, other in ONCE.items():
            self._told_once(batch, strings, table, FIELDS[table].index(other))
        if self.place.role == "scheduler":
            self._schedule(batch, strings)

    def _told_once(self, batch: Batch, strings: Sequence[str], table: int, other: int) -> None:
        fields, known = FIELDS[table], self._once[table]
        name = fields.index("name")
        for row in rows(batch, table):
            said = [strings[v] if f in TEXT else v for f, v in zip(fields, row, strict=True)]
            known.setdefault((said[name], said[other]), (table, *said))  # as readers have it
        while len(known) > LATEST:
            del known[next(iter(known))]

    def _mark(self, t: int, name: str, label: str) -> None:
        if name == "worker left":
            self.gone.append(label)
            self._marks = {m: t for m, t in self._marks.items() if m[1].partition(" ")[0] != label}
        elif name == "worker resumed":
            self._marks.pop(("worker paused", label), None)
        elif name in LASTING and len(self._marks) < MARKS:
            self._marks[name, label] = t

    def _schedule(self, batch: Batch, strings: Sequence[str]) -> None:
        for *numbers, client, parent in rows(batch, GRAPH):
            self._graph = (GRAPH, *numbers, strings[client], parent)
        for run, t, worker, cause, key in rows(batch, ASSIGN):
            if len(self._runs) < RUNS:
                self._runs[run] = (ASSIGN, run, t, strings[worker], cause, key)
        finished = batch["tables"].get("finish")
        for run in values(finished[1]["run"]) if finished else ():
            self._runs.pop(run, None)

    def grow(self, batch: Batch) -> int:
        """Take in new places of the tree of stacks; how many there were."""
        strings, before = batch["strings"], len(self.nodes)
        for number, parent, name, file, line in rows(batch, NODE):
            texts = (self._intern(strings[i]) for i in (name, file))
            self.nodes.extend((number, parent, *texts, line))
        return (len(self.nodes) - before) // len(FIELDS[NODE])

    def _intern(self, text: str) -> int:
        return self._texts.setdefault(sys.intern(text), len(self._texts))

    def batch(self, *, stacks: bool) -> bytes:
        """The same as one batch, under the number of the last one absorbed."""
        found = list(self._rows())
        if stacks:
            found += self._node_rows()
        state = self.state
        return pack(
            self.place, state["seq"], state["t"], found,
            drops=state["drops"], cost=state["cost"], counts=state["counts"],
        )  # fmt: skip

    def _rows(self) -> Iterator[Row]:
        for (name, label), t in self._marks.items():
            yield MARK, t, name, label
        for name, (t, value) in self._facts.items():
            yield SAMPLE, t, name, value
        for known in self._once.values():
            yield from known.values()
        if self._graph is not None and self._runs:  # else nobody waits for it any more
            yield self._graph
        yield from self._runs.values()

    def _node_rows(self) -> Iterator[Row]:
        texts, nodes = list(self._texts), self.nodes
        for i in range(0, len(nodes), 5):
            number, parent, name, file, line = nodes[i : i + 5]
            yield NODE, number, parent, texts[name], texts[file], line


def rows(batch: Batch, table: int) -> Iterator[tuple[Any, ...]]:
    """The rows of a table of a shipped batch; texts are still indices."""
    part = batch["tables"].get(TABLES[table])
    if part is None:
        return iter(())
    return zip(*(values(part[1][field]) for field in FIELDS[table]), strict=True)


def values(column: Sequence[Any]) -> Sequence[Any]:
    """The values of one column of a shipped batch."""
    code, _, data = column
    if code == "k":
        keys: Sequence[Any] = data
        return keys
    numbers = array(code)
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
