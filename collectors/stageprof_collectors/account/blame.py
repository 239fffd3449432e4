"""Whose each second is: a piece of time of any step, given to rows of the table of layers.

The same rules serve the critical path and the busy seconds:

* a task's function, its waiting and its transfers belong to the task's layer;
* a task or value pickled or unpickled belongs to the layer that its key names: for data moved
  between workers and for results that is the layer that *made* it, because what it takes to
  pickle depends on what was made, not on who asks for it;
* construction belongs to the line that called Dask, an optimization of expressions to the line
  that made the expression being rewritten, and so to the layers that the line made;
* what is done to a graph as a whole is shared over its layers (see `graph_parts`);
* the scheduler's transitions belong to the tasks assigned and finished meanwhile; while it takes in
  a graph to all of its tasks, and where it lets tasks go to each task alike;
* modules imported belong to what imported them, and are nobody's where a client's event loop did,
  which starts a cluster; data that a client scatters are nobody's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.carried import ANY, Carried
from stageprof_collectors.account.graph_parts import GraphParts, kind_of
from stageprof_collectors.account.groups import NOBODY, Owners, Parts
from stageprof_collectors.account.intervals import clip
from stageprof_collectors.account.lane import Lane, Lanes
from stageprof_collectors.account.tally import Tally, Wanted
from stageprof_collectors.account.timeline import Ints, Timeline
from stageprof_runtime.stage import IMPORT, STEP, Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

_WHOLE: Final = frozenset(STEP[s] for s in ("graph.dump", "graph.load", "graph.send"))
#: Steps of which messages tell what each layer's part was.
CARRIED: Final = frozenset(STEP[s] for s in ("compress", "decompress")) | frozenset(
    STEP[f"{what}.{way}"] for what in ("task", "data", "result") for way in ("dump", "load")
)
_LINES: Final = frozenset({STEP["build"], STEP["tokenize"], STEP["meta"]})
_REWRITING: Final = frozenset(
    {STEP["expr"], IMPORT[Stage.OPTIMIZATION], IMPORT[Stage.CONSTRUCTION]}
)
_TRANSFER: Final = STEP["data.transfer"]
_GRAPH: Final = _WHOLE | {STEP[s] for s in ("materialize", "order", "state")}


class Piece(NamedTuple):
    """A piece of time: step code, index of the place, ns, label (index of a text), run (or -1)."""

    step: int
    place: int
    start: int
    stop: int
    label: int
    run: int

    @property
    def ns(self) -> int:
        """How long it is."""
        return self.stop - self.start


class Blame:
    """Gives pieces of time to rows."""

    def __init__(self, timeline: Timeline, lanes: Lanes, owners: Owners) -> None:
        self._t = timeline
        self._lanes = lanes
        self.owners = owners
        self.carried = Carried(timeline, owners)
        self.graphs = GraphParts(timeline, owners, self.carried)

    @cached_property
    def told(self) -> frozenset[int]:
        """Steps of which each task and value has told its own part; none in old recordings."""
        return CARRIED.intersection(self.carried.ns)

    def give(self, tally: Tally, piece: Piece) -> None:
        """Give a piece of time to rows."""
        rule = self._rules.get(piece.step)
        if rule is not None:
            rule(tally, piece)
        elif piece.run >= 0:
            tally.rows[self._row(piece.run)] += piece.ns
        elif stage_of(piece.step) in (Stage.OUTSIDE, Stage.UNEXPLAINED) or self._scattered(piece):
            tally.rows[NOBODY] += piece.ns
        else:
            self._graph(tally, piece)

    def graph_of(self, piece: Piece) -> int:
        """The graph that a piece belongs to; -1 if none is known."""
        if piece.run >= 0 and piece.step not in _GRAPH:
            return int(self.graphs.of_run[piece.run])
        return self.graphs.at(piece.place, piece.step, piece.start)

    @cached_property
    def _rules(self) -> dict[int, Callable[[Tally, Piece], None]]:
        """Rule by step; other steps are the run's, or else the graph's."""
        return {
            **dict.fromkeys(CARRIED, self._carried),
            **dict.fromkeys(_LINES, self._line),
            **dict.fromkeys(_REWRITING, self._rewriting),
            **dict.fromkeys(_GRAPH, self._graph),
            IMPORT[Stage.SERIALIZATION]: self._carried,
            STEP["lowlevel"]: self._own,
            STEP["transition"]: self._transition,
            STEP["result.gather"]: self._results,
            STEP["compute"]: self._compute,
        }

    def _scattered(self, piece: Piece) -> bool:
        """Whether it is the user who moves data, from a client."""
        return piece.step == _TRANSFER and self._t.store.places[piece.place].role == "client"

    # -- rules --------------------------------------------------------------------------------

    def _row(self, run: int) -> int:
        return int(self.owners.of_run[run])

    def _graph(self, tally: Tally, piece: Piece, left: float = -1.0) -> None:
        graph = self.graphs.at(piece.place, piece.step, piece.start)
        tally.graphs[kind_of(piece.step), graph] += piece.ns if left < 0 else left

    def _pickled(self, tally: Tally, piece: Piece, step: int) -> float:
        """Give what was noted by itself just then; returns what is left of the piece."""
        left = float(piece.ns)
        for ns, rows in self.carried.within(piece.place, piece.start, piece.stop, step):
            tally.share(ns, rows)
            left -= ns
        return max(left, 0.0)

    def _carried(self, tally: Tally, piece: Piece) -> None:
        """What was pickled just then; the rest is the run's, or as all of the step is."""
        left = self._pickled(tally, piece, piece.step if piece.step in CARRIED else ANY)
        if piece.run >= 0:
            tally.rows[self._row(piece.run)] += left
        elif self.carried.ns.get(piece.step):
            tally.share(left, self.carried.ns[piece.step])
        else:
            self._graph(tally, piece, left)

    def _own(self, tally: Tally, piece: Piece) -> None:
        """A collection's own optimizer; Dask's are for the whole graph."""
        self._graph(tally, piece, self._pickled(tally, piece, piece.step))

    def _line(self, tally: Tally, piece: Piece) -> None:
        rows = self.owners.at(self._t.store.strings[piece.label])
        if rows:
            tally.share(piece.ns, rows)
        else:
            self._graph(tally, piece)

    def _rewriting(self, tally: Tally, piece: Piece) -> None:
        """What has no line of its own inherits the lines that the sampler saw meanwhile."""
        here, strings = piece.place == self._t.region.place, self._t.store.strings
        seen = clip(self._sampled, piece.start, piece.stop) if here else []
        known = [(b - a, self.owners.at(strings[what.label])) for a, b, what in seen]
        whole = sum(ns for ns, _ in known)
        if not whole:
            self._graph(tally, piece)
        for ns, rows in known:
            part = piece.ns * ns / whole
            if rows:
                tally.share(part, rows)
            else:
                self._graph(tally, piece, part)

    def _transition(self, tally: Tally, piece: Piece) -> None:
        taking = self.graphs.taking(piece.place, piece.start)
        rows = {} if taking else self._moved(piece.start, piece.stop)
        if rows:
            tally.share(piece.ns, rows)
        elif piece.run >= 0:
            tally.rows[self._row(piece.run)] += piece.ns
        else:
            self._graph(tally, piece)

    def _results(self, tally: Tally, piece: Piece) -> None:
        """Fetching results is for the layers whose results were wanted until then, by bytes."""
        graph = self.graphs.at(piece.place, piece.step, piece.start)
        ends = self.graphs.taken(graph), piece.stop
        first, last = np.searchsorted(self.wanted.times, ends).tolist()
        if first < last and self.wanted.until[last] > self.wanted.until[first]:
            tally.results[first, last] += piece.ns
        else:
            self._graph(tally, piece)

    def _compute(self, tally: Tally, piece: Piece) -> None:
        """A task's function; or a call of an actor, which belongs to the line that made it."""
        if piece.run >= 0:
            tally.rows[self._row(piece.run)] += piece.ns
        else:
            actor = self._t.store.strings[piece.label].rpartition(".")[0]
            tally.share(piece.ns, self.owners.named(actor))

    # -- what the rules look up -----------------------------------------------------------------

    @cached_property
    def _sampled(self) -> Lane:
        region = self._t.region
        return self._lanes.sampled(region.place, region.thread)

    @cached_property
    def wanted(self) -> Wanted:
        """What runs produced that a client had asked for."""
        table = self._t.read("want", "t")
        runs = self._t.runs_of(table["run"], table["place"])
        known = runs >= 0
        t, runs = table["t"][known], runs[known]
        order = np.argsort(t, kind="stable")
        rows = self.owners.of_run[runs][order]
        nbytes = np.maximum(self._t.runs["nbytes"][runs][order], -1) + 1.0
        return Wanted(t[order], rows, np.concatenate([[0.0], np.cumsum(nbytes)]))

    @cached_property
    def _moves(self) -> tuple[Ints, Ints]:
        """When runs were assigned or finished, in order, and their rows."""
        runs, rows = self._t.runs, self.owners.of_run
        done = runs["finished"] > 0
        t = np.concatenate([runs["assigned"], runs["finished"][done]])
        order = np.argsort(t, kind="stable")
        return t[order], np.concatenate([rows, rows[done]])[order]

    def _moved(self, start: int, stop: int) -> Parts:
        """How many runs of each row were assigned or finished in [start, stop)."""
        times, rows = self._moves
        first, last = np.searchsorted(times, [start, stop])
        if first == last:
            return {}
        moved, counts = np.unique(rows[first:last], return_counts=True)
        return dict(zip(moved.tolist(), counts.astype(float).tolist(), strict=True))


def on_path(recording: Recording) -> dict[int, dict[int, float]]:
    """Ns of the critical path by step, and of each step by row of the table of layers."""
    blame = Blame(recording.timeline, recording.lanes, recording.groups)
    tallies: defaultdict[int, Tally] = defaultdict(Tally)
    for start, stop, (step, place, label), run in recording.path_steps:
        blame.give(tallies[step], Piece(step, place, start, stop, label, run))
    return {step: tally.settled(blame) for step, tally in tallies.items()}
