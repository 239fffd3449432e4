"""Which objects made a dump large or slow: the notes of the pickler put beside who holds what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from stageprof_runtime.holding import LEAST, Held, Walk
from stageprof_runtime.kinds import CONTAINER, CUSTOM, DATA, STRUCTURE, TEXT, attributes, kind_of
from stageprof_runtime.kinship import is_numpy
from stageprof_runtime.parts import OTHER, part_of
from stageprof_runtime.pickling import Attempt, Dump
from stageprof_runtime.weight import weigh

#: Pickling time from which an object is worth telling of, ns.
SLOW: Final = 10_000_000
#: What a pickler gathers before it writes: bytes in band are known to within so much.
_FRAME: Final = 1 << 16
#: Levels of a container looked into for the first object that its pickler tells of.
_LEVELS: Final = 6


class Taken(NamedTuple):
    """What an object took in a dump: ns of all attempts; bytes of the last, in band and beside."""

    ns: int
    written: int
    buffers: int

    @property
    def nbytes(self) -> int:
        """All bytes."""
        return self.written + self.buffers


_NOTHING: Final = Taken(0, 0, 0)


def total(dump: Dump) -> Taken:
    """What a whole dump took."""
    ns = sum(a.notes[-1][0] - a.notes[0][0] for a in dump.attempts if a.notes)
    last = dump.attempts[-1] if dump.attempts else Attempt()
    return Taken(ns, last.written, last.sizes()[-1])


def suspicious(dump: Dump) -> bool:
    """Whether any object in a dump can be large or slow."""
    whole = total(dump)
    if whole.ns < SLOW and whole.nbytes < LEAST:
        return False
    return any(_suspicious(attempt) for attempt in dump.attempts if attempt.notes)


def _suspicious(attempt: Attempt) -> bool:
    for part, took in _segments(attempt, attempt.sizes()):
        # What was written may be Dask's own (the keys of a large graph), or, up to one frame, what
        # went before this part.
        if took.buffers >= LEAST or _holds(part, took.ns >= SLOW):
            return True
    return False


def _segments(attempt: Attempt, sizes: list[int]) -> Iterable[tuple[object, Taken]]:
    """Each part of the graph, with what was taken from it to the next part."""
    notes = attempt.notes
    part, t, w, b = notes[0][3], *notes[0][:3]
    for now, written, buffers, value in notes:
        if value is None or kind_of(value) == STRUCTURE:
            if now - t >= SLOW or written != w or sizes[buffers] - sizes[b] >= LEAST:
                yield part, Taken(now - t, written - w, sizes[buffers] - sizes[b])
            part, t, w, b = value, now, written, buffers


def _holds(part: object, slow: bool) -> bool:  # noqa: FBT001 (a fact, not a switch)
    found = Walk(deep=False).graph(part)
    if slow and any(kind_of(held.value) == CUSTOM for held in found):
        return True
    return sum(weigh(held.value) for held in found) >= LEAST


def shares(dump: Dump, found: list[Held]) -> dict[int, Taken]:
    """What each value took, by id."""
    starts = {mark: id(held.value) for held in found for mark in _marks(held.value)}
    plain = (TEXT, CONTAINER)
    wanted = {held.within for held in found if kind_of(held.value) in plain} | {*starts.values()}
    took: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for attempt in dump.attempts:
        last = attempt is dump.attempts[-1]
        for owner, ns, written, buffers in _owned(attempt, starts):
            if owner not in wanted:
                continue
            sums = took[owner]
            sums[0] += ns
            if last:
                sums[1] += written
                sums[2] += buffers
    values = {id(held.value): held.value for held in found}
    sure = {i: _sure(values.get(i), Taken(*sums)) for i, sums in took.items()}
    return _with_plain(sure, found)


def _sure(value: Any, took: Taken) -> Taken:
    """What is certainly the value's own: a frame that it ended may hold what came before it."""
    if is_numpy(value) and not value.dtype.hasobject:
        return took._replace(written=0, buffers=int(value.nbytes))
    if kind_of(value) == DATA and took.buffers < LEAST and weigh(value) < LEAST // 10:
        # So little of a library's own class takes no 10 ms: something else had the processor.
        return took._replace(ns=0, written=0)
    if took.buffers >= LEAST and took.written < LEAST:
        return took._replace(written=0)
    if took.written < 2 * _FRAME and value is not None and weigh(value) < LEAST // 2:
        return took._replace(written=0)
    return took


def _owned(attempt: Attempt, starts: dict[int, int]) -> Iterable[tuple[int, int, int, int]]:
    """(id of value or part of the graph, ns, bytes in band, in buffers) from one to the next."""
    sizes, owner, values = attempt.sizes(), 0, {*starts.values()}
    t0, w0, b0, _ = attempt.notes[0] if attempt.notes else (0, 0, 0, None)
    for t, w, b, value in attempt.notes:
        mark = starts.get(id(value))
        if mark is None and kind_of(value) == STRUCTURE:
            # A value of the user's may hold what is Dask's itself: a class with delayed methods.
            mark = owner if owner in values and part_of(value) == OTHER else id(value)
        if value is None or (mark is not None and mark != owner):
            yield owner, t - t0, w - w0, sizes[b] - sizes[b0]
            owner, t0, w0, b0 = mark or 0, t, w, b


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


__all__ = ["LEAST", "SLOW", "Taken", "attributes", "shares", "suspicious", "total"]
