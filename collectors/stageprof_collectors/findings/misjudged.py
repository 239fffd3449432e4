"""Results that take another amount of memory than Dask takes them for.

What a worker's process takes more at the end of a run than at its beginning, the result still
there, is held against what Dask took the result for. One run proves nothing (memory that others
freed is used again), so the runs of a kind have to agree; those that imported modules are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Columns, Ints, present
from stageprof_collectors.replay.relief import Covered, Interval
from stageprof_collectors.storage.rows import Rows
from stageprof_runtime.event import STATUS
from stageprof_runtime.stage import IMPORT

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Sizes below this are lost among the pages that an allocator keeps, bytes.
LARGE: Final = 10_000_000
#: Runs of a kind that are needed, and how many of them have to agree.
LEAST: Final = 4
AGREE: Final = 0.75
#: Instants at which Dask believed to hold more than the whole process took: one may be a reading
#: between two updates.
INSTANTS: Final = 2
#: Results of these types hold no memory of their own: what grew is something else.
_SMALL: Final = frozenset({"int", "float", "bool", "complex", "NoneType", "str", "", "tuple"})
#: The same of packages, by the last part of their names: where they are differs between versions.
_SCALARS: Final = {
    "numpy": frozenset(kind.__name__ for kind in np.sctypeDict.values()),
    "pandas": frozenset({"Timestamp", "Timedelta", "Period", "NaTType", "NAType"}),
    "datetime": frozenset({"date", "datetime", "time", "timedelta"}),
    "decimal": frozenset({"Decimal"}),
}
_MEMORY: Final = STATUS.index("memory")
_IMPORTS: Final = frozenset(IMPORT.values())

Bools = NDArray[np.bool_]


class Misjudged(NamedTuple):
    """The results of one kind of task."""

    prefix: str
    #: their type as Dask names it
    type: str
    #: bytes that Dask takes one for, and bytes that one takes: medians
    claimed: float
    real: float
    runs: int

    @property
    def over(self) -> bool:
        """Whether Dask takes them for more than they are."""
        return self.claimed > self.real


def misjudged(recording: Recording, factor: float) -> list[Misjudged]:
    """Kinds of tasks whose results are off by more than a factor, the worst first."""
    around, runs = recording.memory.around, recording.timeline.runs
    grew, rows = around["after"] - around["before"], around["row"]
    large = (np.maximum(np.abs(grew), runs["nbytes"][rows]) >= LARGE) if len(rows) else rows > 0
    if large.sum() < LEAST:
        return []
    usable = np.flatnonzero(undisturbed(recording, rows))
    found = list(_kinds(recording, rows[usable], grew[usable], factor))
    if not _impossible(recording):
        found = [m for m in found if not m.over]
    return sorted(found, key=lambda m: -abs(m.claimed - m.real) * m.runs)


def _kinds(recording: Recording, rows: Ints, grew: Ints, factor: float) -> Iterator[Misjudged]:
    runs, strings = recording.timeline.runs, recording.store.strings
    prefixes = recording.prefixes[rows]
    for prefix in dict.fromkeys(prefixes.tolist()):
        mine = np.flatnonzero(prefixes == prefix)
        claimed, real = runs["nbytes"][rows[mine]], np.maximum(grew[mine], 0)
        kind = strings[int(runs["type"][rows[mine[-1]]])]
        if len(mine) >= LEAST and _off(claimed, real, kind, factor):
            middle = float(np.median(claimed)), float(np.median(real))
            yield Misjudged(str(prefix), kind, *middle, len(mine))


def _off(claimed: Ints, real: Ints, kind: str, factor: float) -> bool:
    """Whether most runs agree that a result is larger, or smaller, than it is taken for."""
    over = (claimed >= LARGE) & (real * factor < claimed)
    under = (real >= LARGE) & (claimed * factor < real)
    if under.mean() >= AGREE:
        return not _small(kind)
    return bool(over.mean() >= AGREE)


def _small(kind: str) -> bool:
    """Whether a type is one of single values."""
    parts = kind.split(".")
    return kind in _SMALL or parts[-1] in _SCALARS.get(parts[0], ())


def undisturbed(recording: Recording, rows: Ints) -> Bools:
    """Runs that ended well, with no other run, spilling or import on their worker meanwhile."""
    runs = recording.timeline.runs
    alone: Bools = _alone(runs)[rows] & (runs["status"][rows] == _MEMORY)
    for place, spans in _disturbing(recording):
        mine = np.flatnonzero(runs["wplace"][rows] == place)
        these = rows[mine]
        alone[mine] &= Covered(spans).of(runs["start"][these], runs["stop"][these]) == 0
    return alone


def _disturbing(recording: Recording) -> Iterator[tuple[int, list[Interval]]]:
    """When a worker's memory grew or shrank by something else than its tasks, by place."""
    yield from recording.incidents.spilling.items()
    spans = recording.timeline.spans
    imports = np.flatnonzero(np.isin(spans["step"], list(_IMPORTS)))
    for place in present(spans["place"][imports]):
        here = imports[spans["place"][imports] == place]
        start, stop = spans["start"][here].tolist(), spans["stop"][here].tolist()
        yield place, list(zip(start, stop, strict=True))


def _alone(runs: Columns) -> Bools:
    """Runs during which no other ran on the same worker."""
    found = np.zeros(len(runs["run"]), np.bool_)
    at = Rows(runs["wplace"])
    for place in at.numbers:
        mine = at.of(place)
        mine = mine[np.argsort(runs["start"][mine], kind="stable")]
        start, stop = runs["start"][mine], runs["stop"][mine]
        before = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(stop)[:-1]])
        after = np.concatenate([start[1:], [np.iinfo(np.int64).max]])
        found[mine] = (before <= start) & (after >= stop)
    return found


def _impossible(recording: Recording) -> bool:
    """Whether Dask believed to hold more than a whole process took, which cannot be."""
    taken = recording.memory.taken.values()
    return any(int((t.managed > t.process).sum()) >= INSTANTS for t in taken)
