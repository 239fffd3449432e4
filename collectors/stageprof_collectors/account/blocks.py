"""Blocking calls, and which run's end each of them waited for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import Final

import numpy as np

from stageprof_collectors.account.block import LATE_NS, LONG_NS, STILL, Block, named
from stageprof_collectors.account.ends import Ends
from stageprof_collectors.account.graph import SLACK
from stageprof_collectors.account.locks import behind
from stageprof_collectors.account.ongoing import Ongoing
from stageprof_collectors.account.timeline import LOCAL, Ints, Timeline, present
from stageprof_collectors.account.underway import running
from stageprof_collectors.account.unended import unended
from stageprof_runtime.event import LOCK

#: What stands for the caller's waiting where a cluster was recorded from outside: since a graph
#: arrived, or since the recording began.
OUTSIDE = frozenset({"attached", "under way"})
#: Keys that came and that no run made, one after another, at most.
_SCATTERED: Final = 100
#: What a table tells of a call, but for its key.
_COLUMNS: Final = Block._fields[:8]


class Blocks:
    """The blocking calls of a timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._t = timeline
        self._ends = Ends(timeline)
        self._strange: dict[tuple[int, int], frozenset[int]] = {}

    @cached_property
    def by_lane(self) -> dict[tuple[int, int], list[Block]]:
        """Blocking calls by (place, thread), in order."""
        table = self._t.read("block", "start", "stop", "awaited", "gather", "gathered")
        keys = self._t.store.keys(table["key"])
        strings = self._t.store.strings
        columns = (table[n].tolist() for n in _COLUMNS)
        found: defaultdict[tuple[int, int], list[Block]] = defaultdict(list)
        for *row, key in zip(*columns, keys, strict=True):
            block = named(Block._make((*row, key, False)), strings[row[4]])
            found[block.place, block.thread].append(block)
        last = {lane: max(blocks).start for lane, blocks in found.items()}
        stop = self._t.region.stop
        for lane, start, call in unended(self._t, last):
            found[lane].append(Block(start, max(start, stop), *lane, call, STILL, 0, 0, ""))
        return {lane: sorted(blocks) for lane, blocks in found.items()}

    def during(self, lane: tuple[int, int], start: int, stop: int) -> list[Block]:
        """The blocking calls of a lane that touch [start, stop), in order."""
        blocks = self.by_lane.get(lane)
        if not blocks:
            return []
        first = bisect_right(self._reach[lane], start)
        end = bisect_left(blocks, stop, key=attrgetter("start"))
        return [blocks[i] for i in range(first, end) if blocks[i].stop > start]

    def waits(self, lane: tuple[int, int]) -> list[Block]:
        """The calls of a lane that wait for Dask, in order: its own, and those behind locks."""
        blocks = self.by_lane.get(lane, [])
        locks = [block for block in blocks if block.call == LOCK]
        if not locks:
            return blocks
        calls = [block for block in blocks if block.call != LOCK]
        until = max(lock.stop for lock in locks) + LATE_NS
        return sorted([*calls, *behind(locks, calls, self._came(lane, locks[0].start, until))])

    def _came(self, lane: tuple[int, int], start: int, stop: int) -> Iterator[tuple[int, str]]:
        """Keys that came to a thread's place in (start, stop], if it had handed their graph over.

        What others compute is no part of the account.
        """
        times, keys = self._arrivals.get(lane[0], (_NONE, _NONE))
        first, last = np.searchsorted(times, (start, stop), side="right").tolist()
        came = zip(times[first:last].tolist(), self._t.store.keys(keys[first:last]), strict=True)
        return ((t, key) for t, key in came if self._handed_over_by(lane, self._producer(key, t)))

    def _handed_over_by(self, lane: tuple[int, int], run: int) -> bool:
        """Whether a run is of a graph that the thread itself handed over."""
        row = int(self._t.graph_rows[run]) if run >= 0 else -1
        submit = self._t.graphs[row].submit if row >= 0 else None
        return submit is not None and (submit.place, submit.thread) == lane

    @cached_property
    def _reach(self) -> dict[tuple[int, int], list[int]]:
        """When the last of the blocking calls up to each one ended; calls may hold others."""
        return {
            lane: list(accumulate((block.stop for block in blocks), max))
            for lane, blocks in self.by_lane.items()
        }

    def last_run(self, block: Block, before: int) -> int:
        """Index of the run whose end the caller waited for last; -1 if it waited for none."""
        awaited, key = block.awaited, block.key
        if awaited == STILL:
            return self._still(block, before)
        if block.call == "local":
            run = self._going_on(before, local=True) if block.given_up else -1
            return run if run >= 0 else self._ends.last_of(block.thread, before)
        if block.call in OUTSIDE and not block.given_up:
            return self._ends.last(awaited)
        if block.given_up or (awaited and block.gave_up):
            run = self._underway(key, before) if key else -1
            return run if run >= 0 else self._before_it(block, before)
        if not awaited and key:
            return self._unheard(block, before)
        if not awaited:
            awaited, key = self._arrival(block, before)
        return self._ended(block, key, awaited)

    def _unheard(self, block: Block, before: int) -> int:
        """The same of a call of which no key was heard of: it gave up, or none are noted."""
        if block.stop - block.start >= LONG_NS:
            run = self._underway(block.key, before)
            if run >= 0:
                return run
            if self._producer(block.key, before) < 0:
                return self._before_it(block, before)
        return self._ended(block, block.key, before)  # its last run before the fetch

    def _before_it(self, block: Block, before: int) -> int:
        """The same of a key that no run was to make yet: one that goes on, or the last that ended.

        -1 if there was none: its graph is on its way, or no worker may run any of it.
        """
        run = self._going_on(before)
        return run if run >= 0 else self._during(block, before)

    def _ended(self, block: Block, key: str, awaited: int) -> int:
        """The run that made a key which came then; -1 if that was before the call."""
        if not awaited or awaited < block.start:
            return -1
        run = self._producer(key, awaited)
        return run if run >= 0 else self._ends.last(awaited)

    def _underway(self, key: str, t: int) -> int:
        """The run of a key that was assigned and had not ended at `t`; -1 if there is none.

        Of one that had not begun, the last that had: threads were busy.
        """
        rows, begun = self._on(t)
        keys = self._t.store.keys(self._t.runs["key"][rows])
        mine = next((row for row, k in zip(rows.tolist(), keys, strict=True) if k == key), -1)
        return mine if mine < 0 or mine in begun or not len(begun) else int(begun[-1])

    def _going_on(self, t: int, *, local: bool = False) -> int:
        """The last run that had begun and not ended at `t`, else that was assigned; -1: none.

        One of a cluster's, or of a local scheduler's.
        """
        rows, begun = self._on(t, local=local)
        return int(begun[-1]) if len(begun) else int(rows[-1]) if len(rows) else -1

    def _on(self, t: int, *, local: bool = False) -> tuple[Ints, Ints]:
        """Runs that were assigned and had not ended at `t`, and those of them that had begun."""
        runs, rows = self._t.runs, self._ongoing[local].at(t)
        return rows, rows[(runs["seen"][rows] == 1) & (runs["start"][rows] < t)]

    @cached_property
    def _ongoing(self) -> dict[bool, Ongoing]:
        """A cluster's runs, and those of local schedulers."""
        runs = self._t.runs
        of_local = runs["run"] >= LOCAL
        return {local: Ongoing(runs, np.flatnonzero(of_local == local)) for local in (False, True)}

    def _still(self, block: Block, before: int) -> int:
        """The run that goes on and was assigned last; where none does, the last that ended."""
        local = block.call == "local"
        run = running(self._t.runs, local=local)
        if run >= 0:
            return run
        if local:
            return self._ends.last_of(block.thread, before)
        return self._during(block, before)

    def _during(self, block: Block, before: int) -> int:
        """The last run that ended while the caller waited; -1 if none did."""
        last = self._ends.last(before)
        return last if last >= 0 and self._t.runs["finished"][last] > block.start else -1

    def _arrival(self, block: Block, before: int) -> tuple[int, str]:
        """The last arrival at the caller's place while it waited."""
        times, keys = self._arrivals.get(block.place, (_NONE, _NONE))
        i = int(np.searchsorted(times, before, side="right")) - 1
        if i < 0 or times[i] < block.start:
            return 0, ""
        return int(times[i]), self._t.store.keys(keys[i : i + 1])[0]

    def came_before(self, block: Block, before: int) -> tuple[int, int]:
        """When the last key came to the caller's place while it waited, and the run of that.

        Of keys that no run made (scattered data) others are looked at. (0, -1): none came.
        """
        times, keys = self._arrivals.get(block.place, (_NONE, _NONE))
        i = int(np.searchsorted(times, before)) - 1
        for j in range(i, max(-1, i - _SCATTERED), -1):
            t = int(times[j])
            if t <= block.start:
                break
            run = self._producer(self._t.store.keys(keys[j : j + 1])[0], t)
            if run >= 0:
                return t, run
        return 0, -1

    @cached_property
    def _arrivals(self) -> dict[int, tuple[Ints, Ints]]:
        table = self._t.read("arrive", "t")
        found: dict[int, tuple[Ints, Ints]] = {}
        for place in present(table["place"]):
            mine = np.flatnonzero(table["place"] == place)
            mine = mine[np.argsort(table["t"][mine], kind="stable")]
            found[place] = table["t"][mine], table["key"][mine]
        return found

    @cached_property
    def _producers(self) -> dict[str, list[tuple[int, int]]]:
        """Runs that produced a key for a client, by key: (instant, index of the run)."""
        table = self._t.read("want", "t")
        found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        keys = self._t.store.keys(table["key"])
        runs = self._t.runs_of(table["run"], table["place"])
        for key, t, run in zip(keys, table["t"].tolist(), runs.tolist(), strict=True):
            found[key].append((t, run))
        for known in found.values():
            known.sort()
        return found

    @cached_property
    def wanted(self) -> frozenset[int]:
        """Runs that produced what a client had asked for."""
        return frozenset(run for runs in self._producers.values() for _, run in runs)

    def _producer(self, key: str, awaited: int) -> int:
        known = self._producers.get(key, [])
        before = bisect_right(known, awaited + SLACK, key=itemgetter(0))
        return known[before - 1][1] if before else -1

    def led_to(self, run: int, block: Block, t: int) -> int:
        """The run that may have led to one whose cause is not known: the last that ended before.

        It is of the same graph; where that is not known, of none that is somebody else's. -1: none.
        """
        graph = int(self._t.graph_rows[run])
        if graph >= 0:
            return self._ends.last_of_graph(graph, t - 1)
        return self._ends.last_but(self._others((block.place, block.thread)), t - 1)

    def _others(self, lane: tuple[int, int]) -> frozenset[int]:
        """Graphs that another thread handed over, which waits for them itself, or another client.

        None where it is not known what this one handed over.
        """
        if lane not in self._strange:
            graphs, waiting = self._t.graphs, self.by_lane.keys() - {lane}
            lanes = [(g.submit.place, g.submit.thread) if g.submit else None for g in graphs]
            clients = {g.client for g, by in zip(graphs, lanes, strict=True) if by == lane}
            self._strange[lane] = frozenset(
                i
                for i, (graph, by) in enumerate(zip(graphs, lanes, strict=True))
                if clients and (by in waiting if by else graph.client not in clients)
            )
        return self._strange[lane]


_NONE: Ints = np.zeros(0, np.int64)
