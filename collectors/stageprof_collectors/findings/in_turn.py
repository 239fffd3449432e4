"""Tasks of the synchronous scheduler: one after another on the program's own thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.library_threads import library_s
from stageprof_collectors.findings.waiters import busy
from stageprof_collectors.profiles.looks import Looks
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.tables.fact import told
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_COMPUTE: Final = frozenset({STEP["compute"]})
#: Of the tasks' time: those that compute less, and do not wait for a processor, wait for others.
_COMPUTES: Final = 0.5
#: Of the other CPUs: tasks whose libraries use so many are wide themselves.
_LIBRARY: Final = 0.5
#: Of the looks at tasks: with more in Python's bytecode threads would get in line for the GIL.
_BYTECODE: Final = 0.3


class InTurn(NamedTuple):
    """Seconds of the critical path, processors that there are, and what could run at once."""

    cost_s: float
    cpus: int
    at_once: float
    bytecode: bool

    @property
    def saved_s(self) -> float:
        """What is saved at most."""
        return self.cost_s * (1 - 1 / max(1.0, min(self.cpus, self.at_once)))


def in_turn(recording: Recording, rows: Ints) -> InTurn | None:
    """What these runs of a local scheduler cost one by one; None if they did not run so."""
    region, runs = recording.timeline.region, recording.timeline.runs
    mine = (runs["thread"][rows] == region.thread) & (runs["wplace"][rows] == region.place)
    took = runs["stop"][rows] - runs["start"][rows]
    if not mine.all() or float((busy(recording)[rows] * took).sum()) < _COMPUTES * took.sum():
        return None
    cpus = int(told(recording.store, "host.cpus").get(region.place, 0))
    if library_s(recording, rows) > _LIBRARY * (cpus - 1) * took.sum() / 1e9:
        return None
    cost = cost_of(recording, steps=_COMPUTE, runs=rows.tolist())
    return InTurn(cost, cpus, _at_once(recording, rows, took), _in_bytecode(recording))


def _at_once(recording: Recording, rows: Ints, took: Ints) -> float:
    """How many could have run at a time: all of their work by the longest chain of each graph."""
    needs, longest, ends = recording.timeline.depends, dict[int, int](), dict[int, int]()
    first, on = needs.first, needs.on
    graphs = recording.timeline.graph_rows[rows].tolist()
    for row, ns, graph in sorted(zip(rows.tolist(), took.tolist(), graphs, strict=True)):
        before = on[first[row] : first[row + 1]].tolist()
        longest[row] = ns + max((longest.get(other, 0) for other in before), default=0)
        ends[graph] = max(ends.get(graph, 0), longest[row])
    return float(took.sum()) / max(1, sum(ends.values()))


def _in_bytecode(recording: Recording) -> bool:
    looks = Looks(recording)
    whole = sum(look.seconds for look in looks.all)
    return sum(look.seconds for look in looks.python()) > _BYTECODE * whole > 0


__all__ = ["InTurn", "in_turn"]
