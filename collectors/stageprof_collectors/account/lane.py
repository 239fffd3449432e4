"""What each thread was doing: spans flattened to the innermost at every instant.

A lane is one thread of one place. Spans of coroutines (a transfer, a connection) overlap others
on their thread without nesting, so they are kept apart as *soft* spans; what the sampler saw is
kept apart too, because exact spans go before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from stageprof_collectors.account.intervals import Segment, innermost
from stageprof_collectors.account.timeline import Timeline
from stageprof_collectors.storage.process import processes
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.text import number
from stageprof_runtime.event import SAMPLED
from stageprof_runtime.stage import STEP

LOOP = STEP["local.loop"]
#: In `Lanes.around_loops` what is waited for tasks.
WAITED = -1
_COMPUTE = STEP["compute"]
SOFT = frozenset({STEP["data.transfer"], STEP["connect"], STEP["compute"]})


class What(NamedTuple):
    """What a segment is: step code, index of the place, and the span's label (text index)."""

    step: int
    place: int
    label: int = 0


Lane = list[Segment[What]]


class Lanes:
    """All lanes of a timeline, made when asked for."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._loops = {(p, number(label)) for _, p, label in timeline.marks("loop thread")}
        self._process = processes(timeline.store.places)
        self._sharing = Rows(self._process)
        self._selected: dict[tuple[tuple[int, ...], str], Lane] = {}

    @cached_property
    def _raw(self) -> dict[str, dict[tuple[int, int], Lane]]:
        """Spans by kind (exact, soft, sampled), then by (place, thread)."""
        spans = self._timeline.spans
        names = ("start", "stop", "step", "place", "label", "thread", "nbytes")
        kinds: dict[str, dict[tuple[int, int], Lane]] = {
            kind: defaultdict(list) for kind in ("exact", "soft", "sampled")
        }
        rows = zip(*(spans[name].tolist() for name in names), strict=True)
        for start, stop, step, place, label, thread, nbytes in rows:
            kind = "sampled" if nbytes == SAMPLED else "soft" if step in SOFT else "exact"
            kinds[kind][place, thread].append((start, stop, What(step, place, label)))
        return kinds

    def exact(self, place: int, thread: int) -> Lane:
        """The exact spans of one thread, innermost first."""
        return self._flat.get((place, thread), [])

    def spans(self, place: int, thread: int) -> Lane:
        """The exact spans of one thread as they were recorded."""
        return list(self._raw["exact"].get((place, thread), ()))

    def of_thread(self, place: int, thread: int) -> Lane:
        """All exact that a thread did, whichever parts of its process told of it.

        Where it had loops of local schedulers the runs that it did itself are there too, as in
        `around_loops`, and what it waited for is left out.
        """
        places = self.beside(place, thread)
        told = [p for p in places if self.exact(p, thread)]
        looping = [p for p in places if (p, thread) in self._looping]
        if len(told) < 2 and not looping:
            return self.exact(told[0], thread) if told else []
        key = ((place, thread), "thread")
        if key not in self._selected:
            parts = [self.spans(p, thread) for p in told]
            parts += [self._runs(p, thread) for p in looping]
            parts += [self._local_waits.get((p, thread), []) for p in looping]
            whole = innermost(segment for part in parts for segment in part)
            self._selected[key] = [s for s in whole if s[2].step != WAITED]
        return self._selected[key]

    def beside(self, place: int, thread: int) -> list[int]:
        """Places that may tell of a thread: tasks on threads of a client's process use that client.

        What an event loop does is told by each of its places for itself.
        """
        if place < 0 or (place, thread) in self._loops:
            return [place]
        places: list[int] = self._sharing.of(int(self._process[place])).tolist()
        return places

    def is_loop(self, place: int, thread: int) -> bool:
        """Whether a thread is an event loop, whichever part of its process says so."""
        places = self._sharing.of(int(self._process[place])).tolist()
        return any((p, thread) in self._loops for p in places)

    def whole(self, place: int, thread: int, step: int) -> Lane:
        """The spans of one step on a thread, whole, whatever is nested in them."""
        return innermost(s for s in self.spans(place, thread) if s[2].step == step)

    def around_loops(self, place: int, thread: int) -> Lane:
        """All that a thread did that had loops of local schedulers, if it had any.

        Their spans are around all of a computation: here are its waits, too, and the runs that the
        thread did itself, as `compute` with the row of each for a label.
        """
        if (place, thread) not in self._looping:
            return []
        key = ((place, thread), "loops")
        if key not in self._selected:
            waits = self._local_waits.get((place, thread), [])
            spans = self.spans(place, thread)
            self._selected[key] = innermost([*spans, *self._runs(place, thread), *waits])
        return self._selected[key]

    @cached_property
    def _looping(self) -> frozenset[tuple[int, int]]:
        """Places and threads that had such a loop."""
        spans = self._timeline.spans
        mine = (spans["step"] == LOOP) & (spans["nbytes"] != SAMPLED)
        return frozenset(
            zip(spans["place"][mine].tolist(), spans["thread"][mine].tolist(), strict=True)
        )

    def _runs(self, place: int, thread: int) -> Lane:
        runs, rows = self._timeline.runs, self._timeline.at.of(place)
        rows = rows[(runs["thread"][rows] == thread) & (runs["seen"][rows] == 1)]
        columns = rows, runs["start"][rows], runs["stop"][rows]
        each = zip(*(column.tolist() for column in columns), strict=True)
        return [(start, stop, What(_COMPUTE, place, row)) for row, start, stop in each]

    @cached_property
    def _local_waits(self) -> dict[tuple[int, int], Lane]:
        """When each thread waited for tasks of a local scheduler.

        What an async region waits for is noted as the region's; its loop's thread waits.
        """
        region = self._timeline.region
        blocks = self._timeline.read("block", "start", "stop")
        calls = [i for i, text in enumerate(self._timeline.store.strings) if text == "local"]
        mine = np.isin(blocks["call"], calls)
        found: defaultdict[tuple[int, int], Lane] = defaultdict(list)
        names = ("place", "thread", "start", "stop")
        rows = zip(*(blocks[name][mine].tolist() for name in names), strict=True)
        for place, lane, start, stop in rows:
            thread = region.thread if (place, lane) == (region.place, region.lane) else lane
            found[place, thread].append((start, stop, What(WAITED, place)))
        return found

    def sampled(self, place: int, thread: int) -> Lane:
        """What the sampler saw of one thread."""
        return innermost(self._raw["sampled"].get((place, thread), ()))

    def around(self, place: int, thread: int, lane: Lane) -> list[int]:
        """For each segment of a thread the index of the run that it is inside of, or -1."""
        runs = self._timeline.runs
        mine = self._timeline.at.of(place)
        mine = mine[runs["thread"][mine] == thread]
        if not len(mine) or not lane:
            return [-1] * len(lane)
        mine = mine[np.argsort(runs["start"][mine], kind="stable")]
        begin = np.array([segment[0] for segment in lane], np.int64)
        at = np.searchsorted(runs["start"][mine], begin, side="right") - 1
        which = mine[np.maximum(at, 0)]
        within = (at >= 0) & (begin < runs["stop"][which])
        found: list[int] = np.where(within, which, -1).tolist()
        return found

    def threads(self, place: int) -> list[int]:
        """Threads of a place that have exact spans."""
        return [thread for thread, _ in self._at(place, "exact")]

    def soft(self, place: int, step: int) -> Lane:
        """The soft spans of a step at a place, merged."""
        key = ((place,), f"soft {step}")
        if key not in self._selected:
            spans = [
                span for _, lane in self._at(place, "soft") for span in lane if span[2].step == step
            ]
            self._selected[key] = innermost(spans)
        return self._selected[key]

    def loop(self, place: int) -> Lane:
        """All that a place's event loop did."""
        return self._select(place, "loop", lambda thread, _: (place, thread) in self._loops)

    def bytes_work(self, place: int) -> Lane:
        """Dumps, loads and imports of a place on any thread but those that run tasks."""
        first, last = STEP["graph.dump"], STEP["decompress"] + 1
        running = self._running.get(place, frozenset())
        return self._select(
            place,
            "bytes",
            lambda thread, what: first <= what.step <= last and thread not in running,
        )

    def all(self, place: int) -> Lane:
        """All that any thread of a place did but those that run tasks."""
        running = self._running.get(place, frozenset())
        return self._select(place, "all", lambda thread, _: thread not in running)

    def naming(self, step: int, label: int) -> list[int]:
        """The places that have spans of a step with a label."""
        return self._naming.get((step, label), [])

    @cached_property
    def _naming(self) -> dict[tuple[int, int], list[int]]:
        found: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for place, step, label in sorted(self._by_step):
            found[step, label].append(place)
        return found

    def step(self, places: Collection[int], *steps: int, label: int = -1) -> Lane:
        """The spans of some steps at some places, of any thread; with `label`, those so named."""
        key = (tuple(places), f"steps {steps} {label}")
        if key not in self._selected:
            found = sorted(
                found
                for place in dict.fromkeys(places)
                for step in steps
                for found in self._by_step.get((place, step, label), ())
            )
            self._selected[key] = innermost(segment for _, segment in found)
        return self._selected[key]

    @cached_property
    def _by_step(self) -> dict[tuple[int, int, int], list[tuple[int, Segment[What]]]]:
        """Exact segments by (place, step, label) and (place, step, -1), numbered lane by lane."""
        found: defaultdict[tuple[int, int, int], list[tuple[int, Segment[What]]]]
        found = defaultdict(list)
        for numbered in enumerate(segment for lane in self._flat.values() for segment in lane):
            what = numbered[1][2]
            found[what.place, what.step, what.label].append(numbered)
            found[what.place, what.step, -1].append(numbered)
        return found

    @cached_property
    def _running(self) -> dict[int, frozenset[int]]:
        runs = self._timeline.runs
        found: defaultdict[int, set[int]] = defaultdict(set)
        for place in self._timeline.at.numbers:
            threads = pd.unique(runs["thread"][self._timeline.at.of(place)]).tolist()
            found[place].update(t for t in threads if (place, t) not in self._loops)
        return {place: frozenset(threads) for place, threads in found.items()}

    def _select(self, place: int, name: str, wanted: Callable[[int, What], bool]) -> Lane:
        """Segments of threads of a place that are wanted, merged into one lane."""
        key = ((place,), name)
        if key not in self._selected:
            segments = [
                segment
                for thread, _ in self._at(place, "exact")
                for segment in self._flat[place, thread]
                if wanted(thread, segment[2])
            ]
            self._selected[key] = innermost(segments)
        return self._selected[key]

    def _at(self, place: int, kind: str) -> list[tuple[int, Lane]]:
        """Threads of a place that have spans of a kind, and these spans."""
        return self._by_place[kind].get(place, [])

    @cached_property
    def _by_place(self) -> dict[str, dict[int, list[tuple[int, Lane]]]]:
        found: dict[str, dict[int, list[tuple[int, Lane]]]] = {}
        for kind, lanes in self._raw.items():
            found[kind] = defaultdict(list)
            for (place, thread), lane in lanes.items():
                found[kind][place].append((thread, lane))
        return found

    @cached_property
    def _flat(self) -> dict[tuple[int, int], Lane]:
        return {key: innermost(lane) for key, lane in self._raw["exact"].items()}
