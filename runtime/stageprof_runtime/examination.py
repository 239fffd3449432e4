"""Which objects made a dump large or slow: the notes of the pickler put beside who holds what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from stageprof_runtime.budget import in_time
from stageprof_runtime.clock import thread_ns
from stageprof_runtime.holder import Held
from stageprof_runtime.holding import LEAST, Walk
from stageprof_runtime.kinds import CONTAINER, CUSTOM, DATA, STRUCTURE, TEXT, attributes, kind_of
from stageprof_runtime.kinship import is_numpy
from stageprof_runtime.parts import LAYER, NOTHING, OTHER, part_of
from stageprof_runtime.pickling import Attempt, Dump, Note
from stageprof_runtime.weight import weigh

#: Pickling time from which an object is worth telling of, ns.
SLOW: Final = 10_000_000
#: What a pickler gathers before it writes: bytes in band are known to within so much.
_FRAME: Final = 1 << 16
#: Levels of a container looked into for the first object that its pickler tells of.
_LEVELS: Final = 6
#: Objects told of for one graph, the largest and slowest first.
MOST: Final = 200
#: So many notes are read between two looks at the clock: a quarter of a millisecond.
_STRIDE: Final = 256
#: So many notes before one its layer is looked for.
_BACK: Final = 64
_NO_NOTE: Final[Note] = (0, 0, 0, None)
#: An instant that does not come.
_NEVER: Final = 2**63


class Taken(NamedTuple):
    """What an object took in a dump: ns of all attempts; bytes of the last, in band and beside."""

    ns: int
    written: int
    buffers: int

    @property
    def nbytes(self) -> int:
        """All bytes."""
        return self.written + self.buffers

    @property
    def matters(self) -> bool:
        """Whether it is worth telling of."""
        return self.nbytes >= LEAST or self.ns >= SLOW


_NOTHING: Final = Taken(0, 0, 0)


def _total(dump: Dump) -> Taken:
    """What a whole dump took."""
    ns = sum(attempt.ns for attempt in dump.attempts)
    last = dump.attempts[-1] if dump.attempts else Attempt()
    return Taken(ns, last.written, last.sizes[-1])


class Segment(NamedTuple):
    """Notes from one part of the graph to the next, and what was taken between them."""

    attempt: Attempt
    start: int
    end: int
    took: Taken

    def parts(self) -> Iterable[object]:
        """The part that it begins with, and those before it up to its layer: they may hold it.

        What a task holds beside another's result or a list comes after these in a dump.
        """
        first = max(0, self.start - _BACK)
        for value in reversed(self.attempt.values[first : self.start + 1]):
            if kind_of(value) == STRUCTURE:
                yield value
                if part_of(value) == LAYER:
                    return


class Examination:
    """A dump, and where in it something large or slow may be."""

    def __init__(self, dump: Dump, until: int = _NEVER) -> None:
        """As far as one comes until this instant of the thread's own clock."""
        self.dump = dump
        self.segments: list[Segment] = []
        #: whether any object in it can be large or slow, or there was no time to know
        self.suspicious = False
        if _total(dump).matters:
            self.segments = [s for attempt in dump.attempts for s in _segments(attempt, until)]
            self.suspicious = self._suspicious(until) or thread_ns() > until

    def _suspicious(self, until: int) -> bool:
        innocent: set[int] = set()
        # What was written may be Dask's own (the keys of a large graph), or, up to one frame, what
        # went before this part.
        return any(
            segment.took.buffers >= LEAST or _holds(segment, innocent, until)
            for segment in in_time(self.segments, until)
        )

    def parts(self) -> set[int]:
        """Ids of the parts of the graph that hold what is large or slow, and maybe of others."""
        return {id(part) for segment in self._heaviest() for part in segment.parts()}

    def _heaviest(self) -> list[Segment]:
        heavy = (segment for segment in self.segments if segment.took.matters)
        return sorted(heavy, key=lambda s: -s.took.nbytes - s.took.ns)[:MOST]

    def shares(self, found: list[Held], until: int = _NEVER) -> dict[int, Taken]:
        """What each value took, by id.

        Where the time is too short to read all notes, only what is large or slow by itself has a
        share.
        """
        starts = {mark: id(held.value) for held in found for mark in _marks(held.value)}
        plain = (TEXT, CONTAINER)
        parts = {held.within for held in found if kind_of(held.value) in plain}
        wanted = parts | {*starts.values()}
        whole = [Segment(a, 0, len(a.values), _NOTHING) for a in reversed(self.dump.attempts)]
        took = self._divided(whole, starts, wanted, until)
        if thread_ns() > until:
            took = self._divided(self._heaviest(), starts, wanted, _NEVER)
        values = {id(held.value): held.value for held in found}
        sure = {
            i: _sure(values.get(i), one)
            for i, one in took.items()
            if one.matters or thread_ns() <= until
        }
        return _with_plain(sure, found)

    def _divided(
        self, segments: list[Segment], starts: dict[int, int], wanted: set[int], until: int
    ) -> dict[int, Taken]:
        took: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
        for segment in segments:
            last = segment.attempt is self.dump.attempts[-1]
            for owner, ns, written, buffers in _owned(segment, starts, until):
                if owner not in wanted:
                    continue
                sums = took[owner]
                sums[0] += ns
                if last:
                    sums[1] += written
                    sums[2] += buffers
        return {i: Taken(*sums) for i, sums in took.items()}


def _segments(attempt: Attempt, until: int) -> Iterable[Segment]:
    """The parts of the graph that took long, or of which something was written."""
    sizes, start = attempt.sizes, 0
    t, w, b, _ = next(attempt.notes(0, 1), _NO_NOTE)
    for i, (now, written, buffers, value) in enumerate(in_time(attempt.notes(), until, _STRIDE)):
        if value is None or _begins(value):
            if now - t >= SLOW or written != w or sizes[buffers] - sizes[b] >= LEAST:
                took = Taken(now - t, written - w, sizes[buffers] - sizes[b])
                yield Segment(attempt, start, i, took)
            start, t, w, b = i, now, written, buffers


def _begins(value: object) -> bool:
    """Whether a part of the graph comes now that may hold something: not the name of a result."""
    return kind_of(value) == STRUCTURE and part_of(value) != NOTHING


def _holds(segment: Segment, innocent: set[int], until: int) -> bool:
    own = segment.attempt.values[segment.start]
    for part in segment.parts():
        if id(part) in innocent or (part is not own and _is_materialized(part)):
            continue
        innocent.add(id(part))
        if _is_heavy(part, segment.took.ns >= SLOW, until):
            return True
    return False


def _is_materialized(part: object) -> bool:
    """Whether it is a layer whose tasks are parts of their own."""
    return part_of(part) == LAYER and type(getattr(part, "mapping", None)) is dict


def _is_heavy(part: object, slow: bool, until: int) -> bool:  # noqa: FBT001 (a fact, not a switch)
    walk = Walk(until, deep=False, clock=thread_ns)
    found = walk.graph(part)
    if walk.stopped or (slow and any(kind_of(held.value) == CUSTOM for held in found)):
        return True
    return sum(weigh(held.value) for held in found) >= LEAST


def _sure(value: Any, took: Taken) -> Taken:
    """What is certainly the value's own: a frame that it ended may hold what came before it."""
    if is_numpy(value) and not value.dtype.hasobject:
        return took._replace(written=0, buffers=int(value.nbytes))
    if kind_of(value) == DATA and took.buffers < LEAST and weigh(value) < LEAST // 10:
        # So little of a library's own class takes no 10 ms: something else had the processor.
        return took._replace(ns=0, written=0)
    if took.buffers >= LEAST and took.written < LEAST:
        return took._replace(written=0)
    if 0 < took.written < 2 * _FRAME and value is not None and weigh(value) < LEAST // 2:
        return took._replace(written=0)
    return took


def _owned(
    segment: Segment, starts: dict[int, int], until: int
) -> Iterable[tuple[int, int, int, int]]:
    """(id of value or part of the graph, ns, bytes in band, in buffers) from one to the next."""
    sizes, owner, values = segment.attempt.sizes, 0, {*starts.values()}
    first, stop = segment.start, segment.end + 1
    t, w, b, value = next(segment.attempt.notes(first, min(first + 1, stop)), _NO_NOTE)
    t0, w0, b0 = t, w, b
    for t, w, b, value in in_time(segment.attempt.notes(first, stop), until, _STRIDE):
        mark = starts.get(id(value))
        if mark is None and _begins(value):
            # A value of the user's may hold what is Dask's itself: a class with delayed methods.
            mark = owner if owner in values and part_of(value) == OTHER else id(value)
        if value is None or (mark is not None and mark != owner):
            yield owner, t - t0, w - w0, sizes[b] - sizes[b0]
            owner, t0, w0, b0 = mark or 0, t, w, b
    yield owner, t - t0, w - w0, sizes[b] - sizes[b0]


def _marks(value: Any, levels: int = _LEVELS) -> list[int]:
    """Ids by which a pickler tells that it has come to a value."""
    kind = kind_of(value)
    if kind in (DATA, CUSTOM):
        return [id(value)]
    if kind != CONTAINER or not value or not levels:
        return []
    inner = next(iter(value.values() if type(value) is dict else value))
    return _marks(inner, levels - 1)


def _with_plain(took: dict[int, Taken], found: list[Held]) -> dict[int, Taken]:
    """The same with texts and containers of plain values, of which no pickler tells.

    They were pickled with the part of the graph that holds them: its time is shared by weight.
    """
    plain = [held for held in found if id(held.value) not in took]
    weights: dict[int, int] = {}
    parts: defaultdict[int, set[int]] = defaultdict(set)
    for held in plain:
        if kind_of(held.value) in (TEXT, CONTAINER):
            weights.setdefault(id(held.value), weigh(held.value))
            parts[held.within].add(id(held.value))
    for within, values in parts.items():
        part, sum_ = took.get(within, _NOTHING), sum(weights[v] for v in values) or 1
        for v in values:
            took[v] = Taken(part.ns * weights[v] // sum_, weights[v], 0)
    return took


def weights(found: list[Held], until: int) -> dict[int, Taken]:
    """The bytes of values by their weight, where no dump tells them."""
    values = {id(held.value): held.value for held in found}
    return {i: Taken(0, weigh(values[i]), 0) for i in in_time(values, until)}


__all__ = ["LEAST", "MOST", "SLOW", "Examination", "Taken", "attributes", "weights"]
