"""One embedded object in one graph: the layers that hold it, and its row of the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from stageprof_collectors.account.carriage import HOPS
from stageprof_collectors.tables.lines import UNKNOWN, Line, Lines
from stageprof_runtime.holding import DATUM

#: Bytes that are copied in a second where their dump or load copies them. What a dump hands out
#: as buffers takes no time there, but is copied later on; this weighs it against slow pickling.
COPIED: Final = 1e9
#: How a call is given an object, and how a function has one from outside: whole.
GIVEN: Final = ("argument", "keyword")
OUTSIDE: Final = ("closure of", "default argument", "function of", "global", "self of")


def is_cut(how: str) -> bool:
    """Whether what is held so is cut: each task of a layer gets a piece of it."""
    return how != DATUM and not how.startswith((*GIVEN, *OUTSIDE))


@dataclass
class Held:
    """An object in one layer."""

    layer: str
    how: str
    #: tasks seen to hold it, 0: all of the layer
    seen: int
    tasks: int = 0
    sent: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def datum(self) -> bool:
        """Whether it is the whole value of the tasks that hold it, and no call's argument."""
        return self.how == DATUM


@dataclass
class Thing:
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
    held: list[Held]
    lines: Lines
    #: the graph was not seen whole
    cut: bool = False
    load_s: float = 0.0

    @property
    def in_graph(self) -> int:
        """Bytes of it in the graph."""
        return self.nbytes * self.copies

    @property
    def _layers(self) -> list[str]:
        """The layers that hold it, where that is known."""
        return [h.layer for h in self.held if h.layer and (h.tasks or not h.datum)]

    @property
    def shared(self) -> bool:
        """Whether it is data of more tasks than it has pieces.

        Recordings were made which tell them of each layer that needs them, in none of whose
        messages they are.
        """
        return sum(h.seen for h in self.held if h.datum) > self.pieces

    def settle(self) -> None:
        """Data that no message was found to hold are tasks of their own: one for each piece."""
        if self.shared and not any(h.tasks for h in self.held):
            each = self.nbytes * max(1, self.copies) // self.pieces
            own = Held("", DATUM, self.pieces, self.pieces, each * self.pieces)
            self.held = [own]

    @property
    def weight(self) -> float:
        """Seconds that pickling it once, in all its copies, should take."""
        return self.dump_s + self.in_graph / COPIED

    def row(self) -> dict[str, Any]:
        """Its row of the table: of the layer that sent most of it."""
        main = max(self.held, key=lambda held: (held.sent, held.tasks, not held.datum))
        used = self.lines.of(main.layer)
        used = self.handed if used == UNKNOWN else used
        dump, load = (sum(h.seconds.get(s, 0.0) for h in self.held) for s in HOPS)
        return {
            "number": self.number, "type": self.type, "nbytes": self.nbytes,
            "copies": self.copies, "pieces": self.pieces,
            "tasks": sum(h.tasks for h in self.held),
            "variable": self.variable, "file": self.made.file, "line": self.made.line,
            "how": main.how, "layer": main.layer, "used_file": used.file, "used_line": used.line,
            "graph_bytes": self.in_graph, "sent_bytes": sum(h.sent for h in self.held),
            "dump_s": self.dump_s, "load_s": self.load_s, "task_dump_s": dump,
            "task_load_s": load, "total_s": self.dump_s + self.load_s + dump + load,
            "computation": self.computation, "layers": self._layers,
        }  # fmt: skip
