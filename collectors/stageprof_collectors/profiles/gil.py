"""Who held the GIL of each process and who waited for it, from the intervals that were seen.

`hold` is a thread's time with the GIL, `wait` its time in the queue for it, `caused` the time that
others waited while it held: with three in the queue a second of holding causes three. All are
known as sums up to any instant, so that any stretch of a thread's time (a task's run, the time at
one line) has its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.storage.process import processes
from stageprof_collectors.storage.rows import Rows, by_thread
from stageprof_collectors.tables.fact import rows_of
from stageprof_collectors.text import number

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Columns, Timeline
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NEVER: Final = np.iinfo(np.int64).max


class Sum(NamedTuple):
    """A quantity summed from the beginning: at `edges` (ns, ascending) it was `total` (ns)."""

    edges: Ints
    total: Floats

    def between(self, start: Ints, stop: Ints) -> Floats:
        """How much of it there was from each start to each stop, ns."""
        if not len(self.edges):
            return np.zeros(len(start))
        at = np.interp(np.concatenate([start, stop]), self.edges, self.total)
        found: Floats = at[len(start) :] - at[: len(start)]
        return found


class Thread(NamedTuple):
    """What a thread had of its process's GIL."""

    held: Sum
    waited: Sum
    caused: Sum


class Seconds(NamedTuple):
    """Of each stretch of time: ns held, ns waited, ns that others waited for it."""

    held: Floats
    waited: Floats
    caused: Floats


class Gil:
    """All that is known of the GILs of a recording."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._rows = timeline.read("hold", "start", "stop")
        #: the process of each place: places of one process have the same
        self.process = processes(timeline.store.places)

    def __bool__(self) -> bool:
        return bool(len(self._rows["start"]))

    @cached_property
    def sources(self) -> dict[int, str]:
        """Process -> what its numbers come from: "watch", or "ticker: " and why not the watch."""
        marks = self._timeline.marks("gil source")
        return {int(self.process[place]): label for _, place, label in marks}

    @cached_property
    def threads(self) -> dict[tuple[int, int], Thread]:
        """(process, thread) -> what it had."""
        found: dict[tuple[int, int], Thread] = {}
        of_process = Rows(self.process[self._rows["place"]])
        for process in of_process.numbers:
            mine = of_process.of(process)
            rows = {name: column[mine] for name, column in self._rows.items()}
            found |= {(process, thread): had for thread, had in _threads(rows)}
        return found

    def watched(self, places: Ints) -> NDArray[np.bool_]:
        """Whether the process of each place (-1: unknown) was seen."""
        seen: NDArray[np.bool_] = self._known[np.maximum(places, 0)] & (places >= 0)
        return seen

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        """Of each place whether its process was seen."""
        return np.isin(self.process, [process for process, _ in self.threads])

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """Whether each run's process was seen to its end: a watch may have been killed."""
        runs = self._timeline.runs
        until = np.full(len(self.process) + 1, _NEVER)  # the last is of no place
        for t, place, label in self._timeline.marks("gil source"):
            until[:-1][self.process == self.process[place]] = _NEVER if label == "watch" else t
        found: NDArray[np.bool_] = self.watched(runs["wplace"])
        return found & (runs["stop"] <= until[runs["wplace"]])

    def of(self, places: Ints, threads: Ints, start: Ints, stop: Ints) -> Seconds:
        """What each stretch of a thread's time had."""
        out = Seconds(*(np.zeros(len(start)) for _ in range(3)))
        process = np.where(places >= 0, self.process[np.maximum(places, 0)], -1)
        for whose, mine in by_thread(process, threads).items():
            had = self.threads.get(whose)
            if had is not None:
                for column, total in zip(out, had, strict=True):
                    column[mine] = total.between(start[mine], stop[mine])
        return out

    @cached_property
    def loops(self) -> dict[int, list[tuple[int, int]]]:
        """Place -> when its event loop waited for the GIL, from and to, ns."""
        found: dict[int, list[tuple[int, int]]] = {}
        for _, place, label in self._timeline.marks("loop thread"):
            spans = self.waits(place, number(label))
            if spans is not None:
                found[place] = spans
        return found

    def waits(self, place: int, thread: int) -> list[tuple[int, int]] | None:
        """When a thread of a place waited for the GIL, from and to, ns; None if it was not seen."""
        known = self.threads.get((int(self.process[place]), thread)) if place >= 0 else None
        if known is None:
            return None
        pairs = known.waited.edges.reshape(-1, 2).tolist()
        return [(start, stop) for start, stop in pairs]

    @cached_property
    def runs(self) -> Seconds:
        """The same of each run."""
        runs = self._timeline.runs
        return self.of(runs["wplace"], runs["thread"], runs["start"], runs["stop"])

    @cached_property
    def shares(self) -> Floats | None:
        """What share of its time each run waited for the GIL; None if nothing is known of any.

        In processes that nobody watched it is estimated: the contention of the process at the time,
        but never more than the time in which the thread used no CPU, as waiting uses none.
        """
        runs = self._timeline.runs
        whole = np.maximum(runs["stop"] - runs["start"], 1)
        estimated = self._estimated(whole)
        if not self:
            return estimated
        guessed = np.zeros(len(whole)) if estimated is None else estimated
        shares: Floats = np.where(self.seen, np.clip(self.runs.waited / whole, 0, 1), guessed)
        return shares

    def _estimated(self, whole: Ints) -> Floats | None:
        samples = self._timeline.read("sample", "t")
        rows = rows_of(self._timeline.store, "gil.contention")
        if not len(rows):
            return None
        runs = self._timeline.runs
        share, of_place = np.zeros(len(whole)), Rows(samples["place"][rows])
        for place in of_place.numbers:
            at = rows[of_place.of(place)]
            mine = self._timeline.at.of(place)
            middle = (runs["start"][mine] + runs["stop"][mine]) // 2
            share[mine] = np.interp(middle, samples["t"][at], samples["value"][at])
        bounded: Floats = np.minimum(share, np.clip(1 - runs["cpu"] / whole, 0, 1))
        return bounded


def _threads(rows: Columns) -> Iterator[tuple[int, Thread]]:
    """The threads of one process."""
    waits = rows["waits"] != 0
    queue = _queue(rows["start"][waits], rows["stop"][waits])
    for (_, thread), mine in by_thread(np.zeros_like(rows["thread"]), rows["thread"]).items():
        held, waited = mine[~waits[mine]], mine[waits[mine]]
        starts, stops = _disjoint(rows["start"][held], rows["stop"][held])
        caused = queue.between(starts, stops)
        yield (
            thread,
            Thread(
                _sum(starts, stops, (stops - starts).astype(float)),
                _lengths(*_disjoint(rows["start"][waited], rows["stop"][waited])),
                _sum(starts, stops, caused),
            ),
        )


def _disjoint(starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
    """In order; what overlaps the one before (damage, clocks) is cut off, what is turned is out."""
    order = np.argsort(starts, kind="stable")
    starts, stops = starts[order], stops[order]
    before = np.maximum.accumulate(np.concatenate([starts[:1], stops[:-1]]))
    starts = np.maximum(starts, before)
    good = stops > starts
    return starts[good], stops[good]


def _lengths(starts: Ints, stops: Ints) -> Sum:
    return _sum(starts, stops, (stops - starts).astype(float))


def _sum(starts: Ints, stops: Ints, amounts: Floats) -> Sum:
    """A quantity that grows by these amounts in these intervals, evenly, and not between them."""
    edges = np.column_stack([starts, stops]).ravel()
    total = np.cumsum(amounts)
    return Sum(edges, np.column_stack([total - amounts, total]).ravel())


def _queue(starts: Ints, stops: Ints) -> Sum:
    """Thread-nanoseconds waited by all threads together."""
    edges = np.concatenate([starts, stops])
    order = np.argsort(edges, kind="stable")
    edges = edges[order]
    waiting = np.cumsum(np.repeat([1, -1], [len(starts), len(stops)])[order])
    grown = np.concatenate([[0], np.cumsum(waiting[:-1] * np.diff(edges))])[: len(edges)]
    return Sum(edges, grown.astype(float))


class Names:
    """What processes and their threads are called."""

    def __init__(self, recording: Recording) -> None:
        timeline, process = recording.timeline, recording.timeline.gil.process.tolist()
        parts = defaultdict[int, dict[str, None]](dict)
        for which, part in zip(process, recording.store.places, strict=False):
            parts[which][_called(recording, part.role, part.name)] = None
        self._process = {which: " and ".join(names) for which, names in parts.items()}
        marks = [(process[p], label.partition(" ")) for _, p, label in timeline.marks("thread")]
        self._thread = {(number, ident): name for number, (ident, _, name) in marks}
        for _, place_, label in timeline.marks("loop thread"):
            self._thread[process[place_], label] = "event loop"

    def of(self, process: int, thread: int) -> tuple[str, str]:
        """A process by its number in `Gil.process`, and a thread of it."""
        return self._process[process], self._thread.get((process, str(thread))) or str(thread)


def _called(recording: Recording, role: str, name: str) -> str:
    if role != "worker":
        return role
    return f"worker {recording.worker_names.get(name) or name}"
