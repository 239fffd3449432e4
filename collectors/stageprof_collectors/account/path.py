"""The critical path: what the caller was waiting for at each instant, walked backward.

From the end of a blocking call: the result being fetched <- the last task's report <- its
function <- (its thread busy with another task | its dependencies under way | the message that
brought it) <- the scheduler's decision <- what led to it (another task's end | the graph) <- the
graph's way from the client. Each hop is a window (see `hop`) between two recorded instants.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import NamedTuple

from stageprof_collectors.account.block import SCATTER, STILL, Block
from stageprof_collectors.account.blocks import Blocks
from stageprof_collectors.account.earlier import Earlier
from stageprof_collectors.account.graph import Graph
from stageprof_collectors.account.hop import Hop, Hops
from stageprof_collectors.account.intervals import clip, paint
from stageprof_collectors.account.lane import Lanes, What
from stageprof_collectors.account.timeline import LOCAL, Timeline
from stageprof_collectors.account.turns import whose
from stageprof_runtime.coordination import WAITS
from stageprof_runtime.event import EXCHANGE, LOCK, NO_CAUSE
from stageprof_runtime.stage import STEP

#: A blocking call inside a task inside a blocking call ...: followed this deep.
DEPTH = 8


class Step(NamedTuple):
    """One piece of the path: when (ns), what, and the run it belongs to (index, or -1)."""

    start: int
    stop: int
    what: What
    run: int


class Walk:
    """Walks back from blocking calls over the runs of a timeline."""

    def __init__(self, timeline: Timeline, lanes: Lanes) -> None:
        self._t = timeline
        self._lanes = lanes
        self._hops = Hops(timeline, lanes)
        self._blocks = Blocks(timeline)
        self._earlier = Earlier(timeline)
        self._runs = timeline.runs

    def waits(self, lane: tuple[int, int]) -> list[Block]:
        """The blocking calls of a lane in order, and those behind other threads."""
        return self._blocks.waits(lane)

    @property
    def blocks(self) -> dict[tuple[int, int], list[Block]]:
        """Blocking calls by (place, thread), in order."""
        return self._blocks.by_lane

    def resolve(self, block: Block, start: int, stop: int, depth: int = 0) -> list[Step]:
        """What was waited for in [start, stop) of a blocking call; covers it without a gap."""
        out: list[Step] = []
        now = stop
        if block.call in (SCATTER, EXCHANGE):
            self._window(out, start, stop, self._hops.moving(block))
            return out
        run = self.awaited(block, start, stop)
        if block.gather and block.gathered > start:
            now = max(start, min(block.gathered, stop))
            self._window(out, now, stop, self._hops.waking(block.place))
            fetched, now = now, max(start, min(block.gather, now))
            self._window(out, now, fetched, self._hops.gathering(block.place))
        if block.call == "actor":
            now = self._window(out, start, now, self._hops.acting(block.place))
        elif run >= 0:
            now = self._from_run(out, block, run, start, now, depth)
        elif not block.call.startswith(WAITS):
            now = self._from_any_graph(out, block, start, now)
        self._window(out, start, now, self._hops.otherwise(block))
        return sorted(out)

    def awaited(self, block: Block, start: int, stop: int) -> int:
        """The run whose end a blocking call waited for last in [start, stop); -1 if for none."""
        if block.call in ("actor", SCATTER, EXCHANGE):
            return -1
        then = block.gather and block.gathered > start
        return self._blocks.last_run(block, max(start, min(block.gather, stop)) if then else stop)

    def way(self, graph: Graph, ready: int) -> list[Step]:
        """A graph's way from its hand-over to `ready` at its scheduler, whoever waited for it."""
        out: list[Step] = []
        if self._is_scheduler(graph.place):
            self._window(out, graph.arrived, ready, self._hops.taking_in(graph.place))
            if graph.submit:
                handing = self._hops.handing_over(graph.submit.place, graph.place)
                self._window(out, graph.submit.t, min(graph.arrived, ready), handing)
        return sorted(out)

    # -- the walk ---------------------------------------------------------------------------

    def _at(self, name: str, run: int) -> int:
        return int(self._runs[name][run])

    def _from_run(
        self, out: list[Step], block: Block, run: int, start: int, now: int, depth: int
    ) -> int:
        """Walk from a run's report back to `start` or to where the path is lost."""
        now = self._reported(out, run, start, now, self._notified(block, run), run)
        walked: set[int] = set()  # runs that are each other's causes are told by damaged files only
        while now > start and run >= 0 and run not in walked:
            walked.add(run)
            ended = max(start, min(now, self._at("stop", run)))
            now = self._window(out, ended, now, self._hop("reporting", run), run)
            now, run = self._work(out, block, run, start, now, depth)
            if run < 0:
                now, run = self._called_back(out, block, start, now)
        return now

    def _called_back(self, out: list[Step], block: Block, start: int, now: int) -> tuple[int, int]:
        """A graph was handed over while the caller waited: by what is called as a key arrives.

        joblib hands over the next batch as one has ended.
        """
        came, run = self._blocks.came_before(block, now) if now > start else (0, -1)
        if run < 0 or self._at("finished", run) > now:
            return now, -1
        now = self._window(out, max(start, came), now, self._hops.waking(block.place))
        return self._reported(out, run, start, now, self._notified(block, run), run), run

    def _reported(self, out: list[Step], of: int, start: int, now: int, hop: Hop, run: int) -> int:
        """Back to the report of a run's end, for a run; where it was lost, its worker says more."""
        finished = self._at("finished", of)
        back = max(start, min(now, finished))
        return self._window(out, back, now, hop, run) if finished else now

    def _work(
        self, out: list[Step], block: Block, run: int, start: int, now: int, depth: int
    ) -> tuple[int, int]:
        """Function, thread, dependencies, message, decision; returns where, and the next run."""
        now, run = self._on_thread(out, run, start, now, depth)
        for name, hop in (("ready", "starting"), ("received", "fetching"), ("assigned", "sending")):
            back = max(start, min(now, self._at(name, run)))
            now = self._window(out, back, now, self._hop(hop, run), run) if back < now else now
        return self._decision(out, block, run, start, now, depth)

    def _on_thread(
        self, out: list[Step], run: int, start: int, now: int, depth: int
    ) -> tuple[int, int]:
        """The function, and those before it on its thread for as long as it had to wait."""
        while True:
            begun = max(start, min(now, self._at("start", run)))
            now = self._compute(out, run, begun, now, depth)
            other = self._earlier.of(run)
            if now <= start or other < 0 or self._at("stop", other) <= self._queued(run):
                return now, run
            back = max(start, min(now, self._at("stop", other)))
            now = self._window(out, back, now, self._hop("starting", run), run)
            run = other

    def _queued(self, run: int) -> int:
        """Since when a run needed nothing but its thread.

        A local scheduler's has all that it needs when it is sent; where it is sent in a batch (the
        processes scheduler sends six tasks at once), those of the batch before it go first.
        """
        return self._at("assigned" if self._at("run", run) >= LOCAL else "ready", run)

    def _compute(self, out: list[Step], run: int, start: int, now: int, depth: int) -> int:
        """A task's function: what its thread did, and what it waited for if it used a client."""
        if now <= start:
            return now
        place, thread = self._at("wplace", run), self._at("thread", run)
        rest = What(STEP["compute"], place)
        lane = clip(self._lanes.of_thread(place, thread), start, now)
        own = [(a, b, self._within(run, a, b, what)) for a, b, what in lane]
        waits = [(s.start, s.stop, s) for s in self._waits_within(run, start, now, depth)]
        whole = paint(start, now, [waits, own], Step(start, now, rest, run))
        out += [Step(a, b, step.what, step.run) for a, b, step in whole]
        return start

    def _within(self, run: int, start: int, stop: int, what: What) -> Step:
        """What the thread of a run did; another run on it is labelled with its row."""
        if what.step == STEP["compute"]:
            return Step(start, stop, what._replace(label=0), what.label)
        return Step(start, stop, what, run)

    def _waits_within(self, run: int, start: int, now: int, depth: int) -> list[Step]:
        """What a task's own blocking calls waited for; messages of an exchange are its own."""
        place, thread = self._at("wplace", run), self._at("thread", run)
        places = self._lanes.beside(place, thread) if depth < DEPTH else ()
        blocks = (b for p in places for b in self._blocks.during((p, thread), start, now))
        found: list[Step] = []
        for block in sorted(blocks):
            begin, end = max(start, block.start), min(now, block.stop)
            if block.call != LOCK and begin < end:
                steps = self.resolve(block, begin, end, depth + 1)
                found += [s._replace(run=run) if block.call == EXCHANGE else s for s in steps]
                start = end  # what lies within another call is a part of that
        return found

    def _decision(
        self, out: list[Step], block: Block, run: int, start: int, now: int, depth: int
    ) -> tuple[int, int]:
        """What led the scheduler to place the run: another run's end, or a graph."""
        place, cause = self._at("place", run), self._at("cause", run)
        if now <= start:
            return now, -1
        if NO_CAUSE < cause < 0:
            return self._from_graph(out, place, -1 - cause, start, now, depth)
        other = self._t.run_of(cause, place) if cause >= 0 else -1
        if other < 0 or self._at("finished", other) > now:
            # The cause was not recorded: the last run that ended before is the best guess.
            other = self._blocks.led_to(run, block, now)
        if other < 0 or other == run:
            return now, -1
        return self._reported(out, other, start, now, self._hop("placing", run), run), other

    # -- graphs -----------------------------------------------------------------------------

    def _from_graph(
        self, out: list[Step], place: int, number: int, start: int, now: int, depth: int
    ) -> tuple[int, int]:
        graph = self._graphs.get((place, number))
        if graph is None:
            return now, -1
        taking = self._hops.taking_in if self._is_scheduler(place) else self._hops.local
        now = self._window(out, max(start, min(now, graph.arrived)), now, taking(place))
        if graph.submit:
            handing = self._hops.handing_over(graph.submit.place, place)
            now = self._window(out, max(start, min(now, graph.submitted)), now, handing)
        run = self._t.run_of(graph.parent, place) if graph.parent >= 0 else -1
        if run < 0 or now <= start:
            return now, -1
        begun = max(start, min(now, self._at("start", run)))
        return self._compute(out, run, begun, now, depth), run

    def _is_scheduler(self, place: int) -> bool:
        return self._t.store.places[place].role == "scheduler"

    def _from_any_graph(self, out: list[Step], block: Block, start: int, now: int) -> int:
        """No run is known: if a graph was being taken in, that is what was waited for.

        Where the recording ended first, or the program gave up, there may be none yet.
        """
        latest = bisect_left(self._arrived, (now,)) - 1
        for i in range(latest, -1, -1):
            arrived, place, number = self._arrived[i]
            if arrived <= start:
                if not (block.gave_up and self._is_scheduler(place)):
                    break
                return self._window(out, start, now, self._hops.taking_in(place))
            if place != block.place:
                return self._from_graph(out, place, number, start, now, 0)[0]
        busy = self._hops.busy(block)
        return self._window(out, start, now, busy) if busy else now

    @cached_property
    def _arrived(self) -> list[tuple[int, int, int]]:
        """When each graph arrived, its scheduler's place and its number, in order."""
        return sorted((graph.arrived, *which) for which, graph in self._graphs.items())

    @cached_property
    def _graphs(self) -> dict[tuple[int, int], Graph]:
        """Graphs by scheduler's place and number."""
        return {(graph.place, graph.number): graph for graph in self._t.graphs}

    # -- windows ----------------------------------------------------------------------------

    def _hop(self, name: str, run: int) -> Hop:
        worker, scheduler = self._at("wplace", run), self._at("place", run)
        if self._at("run", run) >= LOCAL:
            told = self._at("seen", run) or self._at("finished", run)
            goes_on = name == "reporting" and not told
            return (self._hops.running if goes_on else self._hops.local)(scheduler)
        if name == "reporting" and not self._at("finished", run):
            name = "running"
        elif name == "starting" and run in self._t.constrained:
            name = "allotting"
        elif name == "starting" and self._hops.gave_back(run):
            return self._hops.held(scheduler, self._at("worker", run), self._hops.needs(run))
        more = (self._at("worker", run),) if name == "fetching" else ()
        hop: Hop = getattr(self._hops, name)(worker, scheduler, *more)
        return hop

    def _notified(self, block: Block, run: int) -> Hop:
        if self._at("run", run) >= LOCAL:
            return self._hops.local(block.place)
        if (block.awaited == STILL or block.gave_up) and run not in self._blocks.wanted:
            return self._hop("placing", run)  # that of what is still to be done
        return self._hops.notified(self._at("place", run), block.place)

    def _window(self, out: list[Step], start: int, stop: int, hop: Hop, run: int = -1) -> int:
        """Cover [start, stop) and return its start; an empty window leaves `stop`."""
        if start >= stop:
            return stop
        layers, rest = hop
        out += [Step(a, b, *whose(what, run)) for a, b, what in paint(start, stop, layers, rest)]
        return start
