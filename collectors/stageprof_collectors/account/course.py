"""The programs of a recording: that of the region, and those of tasks that launch tasks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stageprof_collectors.account.block import Block
from stageprof_collectors.account.program import Event, Kind, Program, Track, handed, program
from stageprof_collectors.account.region import waits
from stageprof_collectors.account.timeline import LOCAL, Ints
from stageprof_runtime.event import EXCHANGE, LOCK

if TYPE_CHECKING:
    from stageprof_collectors.account.graph import Graph
    from stageprof_collectors.recording import Recording
    from stageprof_collectors.replay.model import Model

#: Calls that return when one key is there, whatever else was asked for meanwhile.
_SINGLE = frozenset({"_result", "result", "as_completed", "next", "local", LOCK})
#: Calls within a task that make no other of it: it goes on in its thread.
_NO_RUN = frozenset({"local", EXCHANGE})


class Course:
    """Makes programs of a recording's blocking calls, hand-overs and tasks."""

    def __init__(self, recording: Recording) -> None:
        self._t = recording.timeline
        self._walk = recording.walk
        self._lanes = recording.lanes
        self._blocks = waits(self._t, recording.lanes, self._walk)
        self._track = Track(recording.path_steps)
        self._region = self._t.region

    @cached_property
    def inline(self) -> Ints:
        """Rows of runs on the region's own thread (the synchronous scheduler)."""
        runs, region = self._t.runs, self._region
        mine = (runs["thread"] == region.thread) & (runs["wplace"] == region.place)
        mine &= (runs["run"] >= LOCAL) & (runs["start"] >= region.start)
        return np.flatnonzero(mine & (runs["stop"] <= region.stop) & (runs["seen"] == 1))

    @cached_property
    def launching(self) -> dict[int, list[Block]]:
        """Rows of runs that waited for others, or handed graphs over; with their blocking calls."""
        found: defaultdict[int, list[Block]] = defaultdict(list)
        for graph in self._t.graphs:
            run = self._t.run_of(graph.parent, graph.place) if graph.parent >= 0 else -1
            if run >= 0:
                found[run].extend([])
        for (place, thread), blocks in self._walk.blocks.items():
            if (place, thread) != (self._region.place, self._region.lane):
                for block, run in self._within(place, thread, blocks):
                    found[run].append(block)
        inline = set(self.inline.tolist())
        return {run: blocks for run, blocks in found.items() if run not in inline}

    def _within(self, place: int, thread: int, blocks: list[Block]) -> Iterator[tuple[Block, int]]:
        """Blocking calls of a thread inside the runs on it."""
        runs = self._t.runs
        mine = np.concatenate([self._t.at.of(p) for p in self._lanes.beside(place, thread)])
        mine = mine[runs["thread"][mine] == thread]
        mine = mine[np.argsort(runs["start"][mine], kind="stable")]
        starts = runs["start"][mine].tolist()
        for block in blocks:
            i = bisect_right(starts, block.start) - 1
            if i >= 0 and block.stop <= runs["stop"][mine[i]] and block.call not in _NO_RUN:
                yield block, int(mine[i])

    @property
    def apart(self) -> Ints:
        """Rows of runs that no pool of threads runs."""
        return np.concatenate([self.inline, np.array([*self.launching], np.int64)])

    def programs(self, model: Model) -> list[Program]:
        """The region's program first, then those of tasks."""
        region = self._region
        handed_over = list(self._handed(model))
        times = sorted(event.start for event in handed_over)
        events = [*handed_over, *self._waited(model, times), *self._ran()]
        made = [program(-1, region.start, region.stop, events, self._track)]
        runs, launched = self._t.runs, self._launched(model)
        for run, blocks in self.launching.items():
            start, stop = int(runs["start"][run]), int(runs["stop"][run])
            inner = [*launched[run], *self._inner(blocks)]
            made.append(program(run, start, stop, inner, Track([])))
        return made

    # -- the region ---------------------------------------------------------------------------

    def _handed(self, model: Model) -> Iterator[Event]:
        """Graphs that the region's own thread handed over; all, if nobody's thread is known."""
        region, delegated = self._region, frozenset(self._delegated)
        for number, graph in enumerate(model.graphs):
            submit, ready = graph.submit, int(model.taken[number])
            if submit is None and not region.attached:
                continue
            own = submit and (submit.place, submit.thread) == (region.place, region.lane)
            own = own or graph in delegated
            if not own and not region.attached:
                continue
            start = graph.submitted or graph.arrived
            if start < region.start or start > region.stop:
                continue
            steps = self._walk.way(graph, ready) or self._track.cut(start, max(start, ready))
            yield handed(graph, number, ready, steps)

    def _waited(self, model: Model, times: list[int]) -> Iterator[Event]:
        """What was waited for; who gave a run up and handed over another graph waited a time."""
        before, asked = self._region.start, _Asked(model, *self._wanted)
        for block in self._parted:
            run = self._walk.awaited(block, block.start, block.stop)
            ended = int(model.finished[run]) if run >= 0 else 0
            at = bisect_left(times, block.stop)
            went_on = block.given_up and at < len(times) and times[at] < ended
            if run >= 0 and not went_on:
                needs = [run] if block.call in _SINGLE else asked.with_it(run, before)
                yield Event(block.start, block.stop, Kind.WAIT, needs, ended)
            before = block.stop

    @cached_property
    def _delegated(self) -> list[Graph]:
        """Graphs handed over while the region's thread waited: by a client's loop, or by itself.

        A call that runs a coroutine in a loop (frameworks train so) hands graphs over one after
        another; the loop itself never waits, a thread of the user's own that hands over does. In a
        thread that runs coroutines of the user's some wait while others hand over.
        """
        place, lane, blocks = self._region.place, self._region.lane, self._blocks
        waiting = self._walk.blocks.keys() - {(place, lane)}
        starts = [block.start for block in blocks]
        found = []
        for graph in self._t.graphs:
            submit = graph.submit
            if submit is None or submit.place != place or (place, submit.thread) in waiting:
                continue
            i = bisect_right(starts, submit.t) - 1
            if i >= 0 and submit.t <= blocks[i].stop:
                found.append(graph)
        return found

    @cached_property
    def _parted(self) -> list[Block]:
        """The region's blocking calls, each cut where graphs were handed over meanwhile."""
        times = sorted(graph.submitted or graph.arrived for graph in self._delegated)
        out = []
        for block in self._blocks:
            start = block.start
            for t in times[bisect_right(times, start) : bisect_left(times, block.stop)]:
                first = block._replace(stop=t, awaited=0, gather=0, gathered=0, key="")
                out.append(first._replace(start=start))
                start = t
            out.append(block._replace(start=start))
        return out

    @cached_property
    def _wanted(self) -> tuple[list[int], Ints]:
        """Runs whose keys a client had asked for, in the order of their ends."""
        table, runs = self._t.store.table("want"), self._t.runs
        rows = self._t.runs_of(table["run"], table["place"])
        rows = np.unique(rows[rows >= 0])
        rows = rows[np.argsort(runs["finished"][rows], kind="stable")]
        return runs["finished"][rows].tolist(), rows

    def _ran(self) -> Iterator[Event]:
        runs = self._t.runs
        for run in self.inline.tolist():
            start, stop = int(runs["start"][run]), int(runs["stop"][run])
            yield Event(start, stop, Kind.INLINE, [run], stop)

    # -- tasks --------------------------------------------------------------------------------

    def _launched(self, model: Model) -> defaultdict[int, list[Event]]:
        """The graphs that each task handed over."""
        found: defaultdict[int, list[Event]] = defaultdict(list)
        for i, graph in enumerate(model.graphs):
            run = self._t.run_of(graph.parent, graph.place) if graph.parent >= 0 else -1
            if run in self.launching:
                ready = int(model.taken[i])
                found[run].append(handed(graph, i, ready, self._walk.way(graph, ready)))
        return found

    def _inner(self, blocks: list[Block]) -> Iterator[Event]:
        """What they waited for, and the steps on which it came to them."""
        for block in blocks:
            run = self._walk.awaited(block, block.start, block.stop)
            if run >= 0:
                ended = min(max(int(self._t.runs["finished"][run]), block.start), block.stop)
                came = Track(self._walk.resolve(block, ended, block.stop)).cut(ended, block.stop)
                yield Event(block.start, block.stop, Kind.WAIT, [run], ended, came)


class _Asked:
    """What a client had asked for with a key, which calls that want several wait for as well.

    What one call waited for is there when the next begins: each is told once. Were it told to all,
    a loop of so many calls would hold the square of their number.
    """

    def __init__(self, model: Model, ends: list[int], rows: Ints) -> None:
        self._model = model
        #: rows of runs, in the order of their ends
        self._ends, self._rows = ends, rows
        self._of_graph: defaultdict[int, list[int]] = defaultdict(list)
        for at, graph in enumerate(model.owner[rows].tolist()):
            self._of_graph[graph].append(at)
        #: how many of each graph were told
        self._told: defaultdict[int, int] = defaultdict(int)

    def with_it(self, run: int, before: int) -> list[int]:
        """A run, and those that ended by then: since an instant, or of its graph."""
        last = bisect_right(self._ends, int(self._model.finished[run]))
        since = bisect_left(self._ends, before)
        graph = int(self._model.owner[run])
        mine = self._of_graph[graph] if graph >= 0 else []
        told, until = self._told[graph], bisect_left(mine, last)
        self._told[graph] = max(told, until)
        places = {*range(since, last), *mine[told:until]}
        return sorted({run, *self._rows[sorted(places)].tolist()})
