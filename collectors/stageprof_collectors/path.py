"""The critical path: what the caller was waiting for at each instant, walked backward.

From the end of a blocking call: the result being fetched <- the last task's report <- its
function <- (its thread busy with another task | its dependencies under way | the message that
brought it) <- the scheduler's decision <- what led to it (another task's end | the graph) <- the
graph's way from the client. Each hop is a window; within a window the spans recorded there say
what was done, and what they leave is the hop's own step.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stageprof_collectors.intervals import paint
from stageprof_collectors.lane import Lane, Lanes, What
from stageprof_collectors.timeline import LOCAL, Timeline
from stageprof_runtime.event import NO_CAUSE
from stageprof_runtime.stage import STEP, UNEXPLAINED

#: Calls of a client that run the caller's own function on servers, unseen; what of any other call
#: no task explains is its messages.
UNSEEN = frozenset({"_run", "_run_on_scheduler", "_run_coroutine", "_run_async"})
#: A blocking call inside a task inside a blocking call ...: followed this deep.
DEPTH = 8


class Step(NamedTuple):
    """One piece of the path: when (ns), what, and the run it belongs to (index, or -1)."""

    start: int
    stop: int
    what: What
    run: int


class Block(NamedTuple):
    """A blocking call: BLOCK's columns, aligned, with its place."""

    start: int
    stop: int
    place: int
    thread: int
    call: str
    awaited: int
    gather: int
    gathered: int
    key: str


class Walk:
    """Walks back from blocking calls over the runs of a timeline."""

    def __init__(self, timeline: Timeline, lanes: Lanes) -> None:
        self._t = timeline
        self._lanes = lanes
        runs = timeline.runs
        names = (
            "place", "assigned", "cause", "finished", "received", "ready", "start", "stop",
            "thread", "wplace", "worker", "seen",
        )  # fmt: skip
        self._col = {name: runs[name].tolist() for name in names}
        self._run = runs["run"].tolist()

    # -- what blocks ------------------------------------------------------------------------

    @cached_property
    def blocks(self) -> dict[tuple[int, int], list[Block]]:
        """Blocking calls by (place, thread), in order."""
        table = self._t.read("block", "start", "stop", "awaited", "gather", "gathered")
        keys = self._t.store.keys(table["key"])
        strings = self._t.store.strings
        names = ("start", "stop", "place", "thread", "call", "awaited", "gather", "gathered")
        found: defaultdict[tuple[int, int], list[Block]] = defaultdict(list)
        for key, *row in zip(keys, *(table[n].tolist() for n in names), strict=True):
            start, stop, place, thread, call, *rest = row
            block = Block(start, stop, place, thread, strings[call], *rest, key)
            found[place, thread].append(block)
        return {lane: sorted(blocks) for lane, blocks in found.items()}

    def resolve(self, block: Block, start: int, stop: int, depth: int = 0) -> list[Step]:
        """What was waited for in [start, stop) of a blocking call; covers it without a gap."""
        out: list[Step] = []
        now = stop
        if block.gather and block.gathered > start:
            fetched = min(block.gathered, stop)
            now = max(start, min(block.gather, stop))
            # What follows the fetch is the client waking up.
            self._window(out, fetched, stop, *self._waking(block))
            self._window(out, now, fetched, *self._gathering(block))
        run = self._last_run(block, now)
        if block.call == "actor":
            self._window(out, start, now, *self._acting(block))
            now = start
        elif run is not None:
            now = self._from_run(out, block, run, start, now, depth)
        else:
            now = self._from_graph_of(out, block, start, now)
        self._window(out, start, now, [], self._default(block), -1)
        return sorted(out)

    def _default(self, block: Block) -> What:
        if block.call == "_scatter":
            return What(STEP["data.transfer"], block.place)
        step = UNEXPLAINED if block.call in UNSEEN else STEP["result.gather"]
        return What(step, block.place)

    def _last_run(self, block: Block, before: int) -> int | None:
        """The run whose end the caller waited for last."""
        if block.call == "local":
            return self._ended_before(self._local_ends, before)
        awaited, key = block.awaited, block.key
        if block.call == "attached":
            return self._ended_before(self._ends, awaited)
        if not awaited and key:
            awaited = before  # where arrivals are not noted: its last run before the fetch
        if not awaited:
            awaited, key = self._arrival(block, before)
        if not awaited or awaited < block.start:
            return None
        run = self._wanted(key, awaited)
        return run if run is not None else self._ended_before(self._ends, awaited)

    def _arrival(self, block: Block, before: int) -> tuple[int, str]:
        """The last arrival at the caller's place while it waited."""
        times, keys = self._arrivals.get(block.place, ([], []))
        i = int(np.searchsorted(times, before, side="right")) - 1
        if i < 0 or times[i] < block.start:
            return 0, ""
        return int(times[i]), self._t.store.keys([keys[i]])[0]

    @cached_property
    def _arrivals(self) -> dict[int, tuple[list[int], list[int]]]:
        table = self._t.read("arrive", "t")
        found: dict[int, tuple[list[int], list[int]]] = {}
        for place in np.unique(table["place"]).tolist():
            mine = np.flatnonzero(table["place"] == place)
            mine = mine[np.argsort(table["t"][mine], kind="stable")]
            found[place] = table["t"][mine].tolist(), table["key"][mine].tolist()
        return found

    @cached_property
    def _wants(self) -> dict[str, list[tuple[int, int, int]]]:
        """key -> (instant, scheduler's place, run) of the runs that produced it."""
        table = self._t.read("want", "t")
        found: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
        names = ("t", "place", "run")
        keys = self._t.store.keys(table["key"])
        for key, t, place, run in zip(keys, *(table[n].tolist() for n in names), strict=True):
            found[key].append((t, place, run))
        return found

    def _wanted(self, key: str, awaited: int) -> int | None:
        known = [(t, p, run) for t, p, run in self._wants.get(key, ()) if t <= awaited + SLACK]
        return self._index.get(max(known)[1:]) if known else None

    @cached_property
    def _index(self) -> dict[tuple[int, int], int]:
        pairs = zip(self._col["place"], self._run, strict=True)
        return {pair: i for i, pair in enumerate(pairs)}

    @cached_property
    def _ends(self) -> tuple[list[int], list[int]]:
        return self._ends_of(np.array(self._run) < LOCAL)

    @cached_property
    def _local_ends(self) -> tuple[list[int], list[int]]:
        return self._ends_of(np.array(self._run) >= LOCAL)

    def _ends_of(self, which: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[list[int], list[int]]:
        finished = self._t.runs["finished"]
        rows = np.flatnonzero(which & (finished > 0)) if len(finished) else np.zeros(0, np.int64)
        rows = rows[np.argsort(finished[rows], kind="stable")]
        return finished[rows].tolist(), rows.tolist()

    def _ended_before(self, ends: tuple[list[int], list[int]], t: int) -> int | None:
        times, rows = ends
        i = int(np.searchsorted(times, t, side="right")) - 1
        return rows[i] if i >= 0 else None

    # -- the walk ---------------------------------------------------------------------------

    def _from_run(
        self, out: list[Step], block: Block, run: int, start: int, now: int, depth: int
    ) -> int:
        """Walk from a run's report back to `start` or to where the path is lost."""
        col = self._col
        finished = col["finished"][run]
        if finished:
            now = self._window(out, max(start, finished), now, *self._notified(block, run))
        while now > start:
            now = self._report(out, run, start, now)
            before = self._work(out, run, start, now, depth)
            now = before[0]
            if before[1] is None:
                return now
            run = before[1]
        return now

    def _report(self, out: list[Step], run: int, start: int, now: int) -> int:
        stop = min(now, self._col["stop"][run])
        return self._window(out, max(start, stop), now, *self._reporting(run))

    def _work(
        self, out: list[Step], run: int, start: int, now: int, depth: int
    ) -> tuple[int, int | None]:
        """Function, thread, dependencies, message, decision; returns where, and the next run."""
        col = self._col
        now = self._compute(out, run, max(start, min(now, col["start"][run])), now, depth)
        while now > start:
            other = self._thread_before(run)
            if other is None:
                break
            # Its thread was busy with another task until that one ended.
            now = self._window(
                out, max(start, min(now, col["stop"][other])), now, *self._starting(run)
            )
            run = other
            now = self._compute(out, run, max(start, min(now, col["start"][run])), now, depth)
        for name, rules in (
            ("ready", self._starting),
            ("received", self._fetching),
            ("assigned", self._sending),
        ):
            now = self._window(out, max(start, min(now, col[name][run])), now, *rules(run))
        return self._decision(out, run, start, now, depth)

    def _thread_before(self, run: int) -> int | None:
        """The run that kept this run's thread busy while it was ready."""
        other = self._before[run]
        if other < 0 or self._col["stop"][other] <= self._col["ready"][run]:
            return None
        return other

    @cached_property
    def _before(self) -> list[int]:
        """For each run the one before it on the same thread, or -1."""
        runs = self._t.runs
        n = len(runs["run"])
        order = np.lexsort((runs["start"], runs["thread"], runs["wplace"]))
        before = np.full(n, -1, np.int64)
        if n > 1:
            a, b = order[:-1], order[1:]
            same = (runs["wplace"][a] == runs["wplace"][b]) & (runs["thread"][a] == runs["thread"][b])
            same &= (runs["seen"][a] == 1) & (runs["seen"][b] == 1) & (runs["thread"][a] != 0)
            same &= runs["stop"][a] <= runs["start"][b]
            before[b[same]] = a[same]
        found: list[int] = before.tolist()
        return found

    def _compute(self, out: list[Step], run: int, start: int, now: int, depth: int) -> int:
        if now <= start:
            return now
        col = self._col
        place, thread = col["wplace"][run], col["thread"][run]
        inner = [
            step
            for block in (self.blocks.get((place, thread), ()) if depth < DEPTH else ())
            if block.start < now and block.stop > start and block.call != "local"
            for step in self.resolve(block, max(start, block.start), min(now, block.stop), depth + 1)
        ]
        out += inner
        waits = [(s.start, s.stop, s.what) for s in inner]
        lane = self._lanes.exact(place, thread) if place >= 0 else []
        for a, b, what in paint(start, now, [waits, lane], What(STEP["compute"], place)):
            if not inner or not any(s.start <= a < s.stop for s in inner):
                out.append(Step(a, b, what, run))
        return start

    def _decision(
        self, out: list[Step], run: int, start: int, now: int, depth: int
    ) -> tuple[int, int | None]:
        """What led the scheduler to place the run: another run's end, or a graph."""
        if now <= start:
            return now, None
        place, cause = self._col["place"][run], self._col["cause"][run]
        if cause == NO_CAUSE:
            return now, None
        if cause >= 0:
            other = self._index.get((place, cause))
            if other is None or self._col["finished"][other] > now:
                return now, None
            ended = max(start, self._col["finished"][other])
            return self._window(out, ended, now, *self._placing(run)), other
        return self._from_graph(out, place, -1 - cause, start, now, depth)

    def _from_graph(
        self, out: list[Step], place: int, number: int, start: int, now: int, depth: int
    ) -> tuple[int, int | None]:
        graph = self._graphs.get((place, number))
        if graph is None:
            return now, None
        arrived, submitted, client, parent = graph
        now = self._window(out, max(start, min(now, arrived)), now, *self._taking_in(place))
        if submitted:
            rules = self._handing_over(place, client)
            now = self._window(out, max(start, min(now, submitted)), now, *rules)
        run = self._index.get((place, parent))
        if run is None or now <= start:
            return now, None
        now = self._compute(out, run, max(start, min(now, self._col["start"][run])), now, depth)
        return now, run

    def _from_graph_of(self, out: list[Step], block: Block, start: int, now: int) -> int:
        """No run is known: if a graph was being taken in, that is what was waited for."""
        for (place, number), (arrived, *_) in sorted(self._graphs.items(), key=lambda g: -g[1][0]):
            if start < arrived < now and place != block.place:
                return self._from_graph(out, place, number, start, now, 0)[0]
        return now

    @cached_property
    def _graphs(self) -> dict[tuple[int, int], tuple[int, int, int, int]]:
        """(scheduler's place, number) -> arrived, handed over (0: unknown), client, parent."""
        table = self._t.read("graph", "start", "stop")
        sent = self._t.read("submit", "t")
        names = ("place", "graph", "start", "wanted", "parent")
        order = np.argsort(table["start"], kind="stable")
        unused = sorted(zip(*(sent[n].tolist() for n in ("t", "place", "wanted")), strict=True))
        found = {}
        for place, number, start, wanted, parent in zip(
            *(table[n][order].tolist() for n in names), strict=True
        ):
            t, client = _hand_over(unused, start, wanted)
            found[place, number] = (start, t, client, parent)
        return found

    # -- what each hop may show: layers in order of precedence, and what is left ---------------

    def _window(
        self, out: list[Step], start: int, stop: int, layers: list[Lane], rest: What, run: int
    ) -> int:
        """Cover [start, stop) and return its start; an empty window leaves `stop`."""
        if start >= stop:
            return stop
        if not any(layers):
            out.append(Step(start, stop, rest, run))
        else:
            out += [Step(a, b, what, run) for a, b, what in paint(start, stop, layers, rest)]
        return start

    def _waking(self, block: Block) -> tuple[list[Lane], What, int]:
        lanes = [self._lanes.bytes_work(block.place)]
        return lanes, What(STEP["result.gather"], block.place), -1

    def _gathering(self, block: Block) -> tuple[list[Lane], What, int]:
        load = STEP["result.load"], STEP["decompress"]
        dump = STEP["result.dump"], STEP["compress"], STEP["spill.read"]
        lanes = [self._lanes.step(block.place, *load)]
        lanes += [self._lanes.step(p, *dump) for p in self._workers]
        lanes += [self._lanes.loop(block.place)]
        return lanes, What(STEP["result.gather"], block.place), -1

    def _acting(self, block: Block) -> tuple[list[Lane], What, int]:
        lanes = [self._lanes.soft(p, STEP["compute"]) for p in self._workers]
        return lanes, What(STEP["result.gather"], block.place), -1

    @cached_property
    def _workers(self) -> list[int]:
        return [i for i, place in enumerate(self._t.store.places) if place.role == "worker"]

    def _local(self, run: int) -> bool:
        return bool(self._run[run] >= LOCAL)

    def _notified(self, block: Block, run: int) -> tuple[list[Lane], What, int]:
        if self._local(run):
            return [], What(STEP["local.loop"], block.place), run
        lanes = [self._lanes.loop(self._col["place"][run]), self._lanes.bytes_work(block.place)]
        return lanes, What(STEP["result.gather"], block.place), run

    def _reporting(self, run: int) -> tuple[list[Lane], What, int]:
        worker, scheduler = self._col["wplace"][run], self._col["place"][run]
        if self._local(run):
            return [], What(STEP["local.loop"], scheduler), run
        lanes = [self._lanes.loop(worker), self._lanes.loop(scheduler)]
        return lanes, What(STEP["task.send"], worker), run

    def _starting(self, run: int) -> tuple[list[Lane], What, int]:
        worker = self._col["wplace"][run]
        if self._local(run):
            return [], What(STEP["local.loop"], self._col["place"][run]), run
        return [self._lanes.loop(worker)], What(STEP["wait.thread"], worker), run

    def _fetching(self, run: int) -> tuple[list[Lane], What, int]:
        worker = self._col["wplace"][run]
        if worker < 0:
            return [], What(STEP["compute"], worker), run
        dump, read = STEP["data.dump"], STEP["spill.read"]
        name = self._col["worker"][run]
        lanes = [self._lanes.bytes_work(worker), self._lanes.loop(worker)]
        lanes += [self._lanes.step(p, dump, label=name) for p in self._workers if p != worker]
        lanes += [self._lanes.step(p, read) for p in self._workers]
        lanes.append(self._lanes.soft(worker, STEP["connect"]))
        return lanes, What(STEP["data.transfer"], worker), run

    def _sending(self, run: int) -> tuple[list[Lane], What, int]:
        worker, scheduler = self._col["wplace"][run], self._col["place"][run]
        if self._local(run):
            return [], What(STEP["local.loop"], scheduler), run
        bytes_ = STEP["task.dump"], STEP["compress"]
        lanes = [self._lanes.bytes_work(worker), self._lanes.step(scheduler, *bytes_)]
        lanes += [self._lanes.loop(worker), self._lanes.loop(scheduler)]
        return lanes, What(STEP["task.send"], scheduler), run

    def _placing(self, run: int) -> tuple[list[Lane], What, int]:
        scheduler = self._col["place"][run]
        if self._local(run):
            return [], What(STEP["local.loop"], scheduler), run
        return [self._lanes.loop(scheduler)], What(STEP["place"], scheduler), run

    def _taking_in(self, place: int) -> tuple[list[Lane], What, int]:
        role = self._t.store.places[place].role
        if role != "scheduler":
            return [], What(STEP["local.loop"], place), -1
        return [self._lanes.all(place)], What(STEP["place"], place), -1

    def _handing_over(self, place: int, client: int) -> tuple[list[Lane], What, int]:
        lanes = [self._lanes.bytes_work(client), self._lanes.all(place)]
        return lanes, What(STEP["graph.send"], client), -1


#: Stamps of two clocks may disagree by this much, ns.
SLACK = 2_000_000


def _hand_over(unused: list[tuple[int, int, int]], start: int, wanted: int) -> tuple[int, int]:
    """The first hand-over not yet matched that came before the graph arrived; (0, -1) if none."""
    for i, (t, place, keys) in enumerate(unused):
        if t > start + SLACK:
            break
        if keys == wanted or not wanted:
            del unused[: i + 1]
            return t, place
    return 0, -1
