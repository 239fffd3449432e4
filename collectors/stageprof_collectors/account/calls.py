"""Blocking calls of the region's thread one after another, and what they computed.

A *streak* is hand-overs from one line, each waited for before the next: what a loop does that
computes in each round. Of what a graph computed, *repeats* are runs of keys that an earlier graph
had computed and nobody had kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.region import waits
from stageprof_collectors.account.timeline import Ints
from stageprof_runtime.event import STATUS
from stageprof_runtime.rounds import UNKNOWN

if TYPE_CHECKING:
    from stageprof_collectors.account.graph import Graph
    from stageprof_collectors.recording import Recording

_DONE = STATUS.index("memory")
#: So many computes may stand in one line, or be Dask's own; more of one line are a loop.
_TWO: Final = 2
#: The prefix of a task that looks at a result to learn of which type and columns others are.
META: Final = "make_meta"
#: The prefix of tasks that make a frame of a bag; one item is taken first, at the same line.
_FRAMED: Final = "to_dataframe"


class Streak(NamedTuple):
    """Blocking calls from one line: its graphs (indices of `Timeline.graphs`), and the verdict of
    `rounds` on whether they need each other's results."""  # noqa: D205, D209

    file: str
    line: int
    graphs: tuple[int, ...]
    verdict: str


class Calls:
    """The graphs that the region's own thread handed over and waited for."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._t = recording.timeline

    @cached_property
    def own(self) -> list[int]:
        """Indices of the graphs of the region's thread, in order, without its `metas`."""
        metas = set(self.metas)
        return [i for i in self._handed_over if i not in metas]

    @cached_property
    def metas(self) -> list[int]:
        """Graphs of the region's thread that Dask itself computes, to learn what others return."""
        asked, framed = self._with(META), self._with(_FRAMED)
        made, last = self._lines_of(_FRAMED), max(framed, default=-1)
        return [
            i
            for i in self._handed_over
            if i in asked or (i < last and i not in framed and self.line(i) in made)
        ]

    def _with(self, name: str) -> set[int]:
        """The graphs that have tasks of a name."""
        groups = self._recording.groups
        named = list(groups.named(name))
        if not named:
            return set()
        rows = np.flatnonzero(np.isin(groups.of_run, named))
        return set(self._recording.replay.owner[rows].tolist())

    def _lines_of(self, name: str) -> set[tuple[str, int]]:
        """The lines that made layers of a name."""
        table, strings = self._t.store.table("line"), self._t.store.strings
        columns = (table[column].tolist() for column in ("name", "file", "line"))
        return {
            (strings[file], line)
            for made, file, line in zip(*columns, strict=True)
            if strings[made] == name or strings[made].startswith(f"{name}-")
        }

    @cached_property
    def _handed_over(self) -> list[int]:
        region = self._t.region
        lane = region.place, region.lane
        return [i for i, g in enumerate(self._t.graphs) if self._lane(g) == lane]

    def _lane(self, graph: Graph) -> tuple[int, int]:
        return (graph.submit.place, graph.submit.thread) if graph.submit else (-1, -1)

    @cached_property
    def blocking(self) -> list[int]:
        """Those that were waited for before the next was handed over."""
        recording = self._recording
        starts = [b.start for b in waits(self._t, recording.lanes, recording.walk)]
        times = [self._t.graphs[i].submitted for i in self.own]
        found: list[int] = []
        if not times:
            return found
        for i, t, following in zip(self.own, times, [*times[1:], 2**62], strict=True):
            at = bisect_left(starts, t)
            if at < len(starts) and starts[at] <= following:
                found.append(i)
        return found

    def line(self, graph: int) -> tuple[str, int]:
        """The user's line that handed a graph over."""
        submit = self._t.graphs[graph].submit
        return (self._t.store.strings[submit.file], submit.line) if submit else ("", 0)

    @cached_property
    def streaks(self) -> list[Streak]:
        """Two or more blocking calls from one line with no other hand-over between them.

        Of a loop with several such lines there are those of the others between.
        """
        blocking = set(self.blocking)
        found = []
        for _, some in groupby(self.own, key=self._loop):
            by_line: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
            for graph in some:
                by_line[self.line(graph)].append(graph)
            for (file, line), graphs in by_line.items():
                if file and len(graphs) > 1 and blocking.issuperset(graphs[:-1]):
                    verdict = self._verdicts.get(f"{file}:{line}", UNKNOWN)
                    found.append(Streak(file, line, tuple(graphs), verdict))
        return found

    def _loop(self, graph: int) -> tuple[str, int]:
        """The line of a graph; of those that the program's text has in loops all are one."""
        file, line = self.line(graph)
        told = self._verdicts.get(f"{file}:{line}", UNKNOWN) != UNKNOWN
        return ("", 0) if told and file else (file, line)

    def looped(self, file: str, line: int) -> bool:
        """Whether a line is in a loop, by the program's text, or waited for three graphs.

        What Dask computes while it optimizes (where a sorted frame is divided) is not counted.
        """
        told = self._verdicts.get(f"{file}:{line}", UNKNOWN) != UNKNOWN
        return told or self._waited[file, line] > _TWO

    @cached_property
    def _waited(self) -> Counter[tuple[str, int]]:
        """How many graphs were waited for that each line handed over."""
        return Counter(map(self.line, self.blocking))

    @cached_property
    def _verdicts(self) -> dict[str, str]:
        marks = self._t.marks("loop")
        return {at: verdict for _, _, label in marks for verdict, _, at in [label.partition(" ")]}

    def rows(self, graphs: tuple[int, ...]) -> Ints:
        """Rows of the runs that these graphs led to."""
        return np.flatnonzero(np.isin(self._recording.replay.owner, graphs))

    @cached_property
    def repeats(self) -> Ints:
        """Rows of runs of keys that an earlier graph had computed well.

        Of the region's own graphs: what a framework hands over in its training is another matter.
        """
        runs, owner = self._t.runs, self._recording.replay.owner
        rows = np.flatnonzero((runs["status"] == _DONE) & np.isin(owner, self.own))
        keys = self._t.store.keys(runs["key"][rows])
        first: dict[str, int] = {}
        again = []
        for row, key in zip(rows.tolist(), keys, strict=True):
            before = first.setdefault(key, row)
            if owner[before] != owner[row] and not self.gone(before, row):
                again.append(row)
        return np.array(again, np.int64)

    def gone(self, before: int, row: int) -> bool:
        """Whether the worker of an earlier run had left, and taken the result along."""
        runs, words = self._t.runs, self._t.store.strings
        left = self._left.get(words[int(runs["worker"][before])], [])
        at = bisect_left(left, int(runs["finished"][before]))
        return at < len(left) and left[at] <= int(runs["assigned"][row])

    @cached_property
    def _left(self) -> dict[str, list[int]]:
        """When workers left, by their address: another may have it later."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for t, _, worker in self._t.marks("worker left"):
            found[worker].append(t)
        return dict(found)
