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
    COLUMN,
    FIELDS,
    LINE,
    MARK,
    NODE,
    SAMPLE,
    TABLES,
    TEXT,
    Place,
)
from stageprof_runtime.flight.runs import Runs
from stageprof_runtime.flight.table import Batch, column, rows

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
#: Of one place: lasting marks, and rows that are told once, the latest; of all: places in trees,
#: 40 bytes each; and workers that have left.
MARKS: Final = 10_000
LATEST: Final = 10_000
NODES: Final = 500_000
GONE: Final = 10_000
#: What can be left out: trees of stacks, and the runs under way.
STACKS: Final = "stacks"
RUNS: Final = "runs"


class Basis:
    """Everything that holds at the end of the batches that were absorbed."""

    def __init__(self) -> None:
        self._known: dict[Place, _Known] = {}
        #: workers that have left; what is still known of them is forgotten at the next turn
        self._left: set[Place] = set()
        #: the latest of those: others of their hosts may send later what they have left
        self._gone: dict[Place, None] = {}
        self._nodes = 0
        #: whether there were more places in trees of stacks than are kept
        self._overflowed = False

    def absorb(self, packed: bytes) -> None:
        """Learn from one batch, as shipped.

        Raises:
            ValueError, KeyError, TypeError: it is no batch.
        """
        batch = unpacked(packed)
        place = Place(*batch["place"])
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = _Known(place)
        known.learn(batch)
        self._grow(known, batch)
        if place in self._gone:
            self._left.add(place)
        if known.gone:
            self._leave(known.gone)

    def _grow(self, known: _Known, batch: Batch) -> None:
        if self._nodes < NODES:
            self._nodes += known.grow(batch)
        elif any(rows(batch, NODE)):
            self._overflowed = True

    def _leave(self, names: dict[str, int]) -> None:
        gone = [place for place in self._known if place.name in names]
        names.clear()
        self._left.update(gone)
        self._gone |= dict.fromkeys(gone)
        while len(self._gone) > GONE:
            del self._gone[next(iter(self._gone))]

    def batches(self, without: Sequence[str] = ()) -> Iterator[bytes]:
        """What is known now, one batch for each place; its number is that of the last absorbed."""
        for known in self._known.values():
            yield known.batch(without)

    @property
    def lacking(self) -> tuple[str, ...]:
        """What is not in it as a whole, for there was too much of it."""
        runs = any(known.runs.overflowed for known in self._known.values())
        return (STACKS,) * self._overflowed + (RUNS,) * runs

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
        #: addresses of workers that the place said have left, and when
        self.gone: dict[str, int] = {}
        self.runs = Runs()
        self._marks: dict[tuple[str, str], int] = {}
        self._facts: dict[str, tuple[int, float]] = {}
        #: table -> (name, what else) -> the row
        self._once: dict[int, dict[tuple[Any, ...], Row]] = {table: {} for table in ONCE}
        self._texts: dict[str, int] = {}

    def learn(self, batch: Batch) -> None:
        """Marks, facts, what is told once, and of a scheduler the runs under way."""
        strings = batch["strings"]
        self.state = {name: batch[name] for name in ("seq", "t", "drops", "cost", "counts")}
        for t, name, label in rows(batch, MARK):
            self._mark(t, strings[name], strings[label])
        facts = {i for i, text in enumerate(strings) if text.startswith(FACTS)}
        if facts:
            told = (row for row in rows(batch, SAMPLE) if row[1] in facts)
            self._facts |= {strings[name]: (t, value) for t, name, value in told}
        for table, other in ONCE.items():
            self._told_once(batch, strings, table, FIELDS[table].index(other))
        if self.place.role == "scheduler":
            self.runs.learn(batch, self.gone)

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
            self.gone[label] = t
            self._marks = {m: t for m, t in self._marks.items() if m[1].partition(" ")[0] != label}
        elif name == "worker resumed":
            self._marks.pop(("worker paused", label), None)
        elif name in LASTING and len(self._marks) < MARKS:
            self._marks[name, label] = t

    def grow(self, batch: Batch) -> int:
        """Take in new places of the tree of stacks; how many there were."""
        strings, before = batch["strings"], len(self.nodes)
        for number, parent, name, file, line in rows(batch, NODE):
            texts = (self._intern(strings[i]) for i in (name, file))
            self.nodes.extend((number, parent, *texts, line))
        return (len(self.nodes) - before) // len(FIELDS[NODE])

    def _intern(self, text: str) -> int:
        return self._texts.setdefault(sys.intern(text), len(self._texts))

    def batch(self, without: Sequence[str]) -> bytes:
        """The same as one batch, under the number of the last one absorbed."""
        found = list(self._rows())
        if RUNS not in without:
            found += self.runs.rows()
        state = self.state
        packed = pack(
            self.place, state["seq"], state["t"], found,
            drops=state["drops"], cost=state["cost"], counts=state["counts"],
        )  # fmt: skip
        return self._with_nodes(packed) if self.nodes and STACKS not in without else packed

    def _rows(self) -> Iterator[Row]:
        for (name, label), t in self._marks.items():
            yield MARK, t, name, label
        for name, (t, value) in self._facts.items():
            yield SAMPLE, t, name, value
        for known in self._once.values():
            yield from known.values()

    def _with_nodes(self, packed: bytes) -> bytes:
        """The same with the places in trees of stacks.

        A row for each would have the garbage collector stop the scheduler for long.
        """
        batch = unpacked(packed)
        first, width = len(batch["strings"]), len(FIELDS[NODE])
        batch["strings"] += self._texts
        columns = {field: self.nodes[i::width] for i, field in enumerate(FIELDS[NODE])}
        for field in columns.keys() & TEXT:
            columns[field] = array("q", [first + i for i in columns[field]])
        told = {field: column(numbers) for field, numbers in columns.items()}
        batch["tables"][TABLES[NODE]] = [len(self.nodes) // width, told]
        again: bytes = msgpack.packb(batch, unicode_errors="surrogatepass")
        return again


def unpacked(packed: bytes) -> Batch:
    """A batch as shipped.

    Raises:
        ValueError, TypeError: it is none.
    """
    batch: Batch = msgpack.unpackb(
        packed, strict_map_key=False, unicode_errors="surrogatepass", use_list=True
    )
    return batch
