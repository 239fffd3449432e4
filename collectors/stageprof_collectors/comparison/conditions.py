"""What differs between the sides beside the program's own doing; it is named before any number.

Times of another machine, of other versions, of a cluster of another shape, of one that others kept
busy or of other data say nothing of the program, and those of another program nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from stageprof_collectors.comparison.measured import Group, Measured
from stageprof_collectors.findings.phrase import at
from stageprof_collectors.findings.quantity import size
from stageprof_collectors.others import MANY, Others

#: What a condition can be about, in the order in which they are named.
KINDS: Final = ("program", "machine", "versions", "cluster", "load", "data", "events")
#: Those under which a program has other findings: what fits into one memory does not into another.
ELSEWHERE: Final = frozenset({"machine", "cluster", "load", "events"})
#: Those that each recording says in words.
_SAID: Final = KINDS[:4]
#: Data differ if what a layer reads differs by more than this share, and is that much at all.
READ: Final = 0.10
LEAST_BYTES: Final = 1_000_000


class Difference(NamedTuple):
    """A condition that is not the same on both sides."""

    #: one of `KINDS`
    kind: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def differences(base: Sequence[Measured], head: Sequence[Measured]) -> tuple[Difference, ...]:
    """Conditions that differ; the candidate's layers must be `matched` with the baseline's."""
    return tuple(sorted(_differences(base, head), key=lambda found: KINDS.index(found.kind)))


def _differences(base: Sequence[Measured], head: Sequence[Measured]) -> Iterator[Difference]:
    for kind in _SAID:
        before, after = (tuple(sorted({_of(each, kind) for each in side})) for side in (base, head))
        if before != after:
            yield Difference(kind, before, after)
    loads = [_load(side) for side in (base, head)]
    if _differ(*loads):
        yield Difference("load", *((load.said,) for load in loads if load))
    lost = [_lost(side) for side in (base, head)]
    if bool(lost[0]) != bool(lost[1]):
        yield Difference("events", *(side or ("all",) for side in lost))
    read = [_read(side) for side in (base, head)]
    for group, was in read[0].items():
        now = read[1].get(group, 0.0)
        if now and max(was, now) > LEAST_BYTES and abs(now - was) > READ * was:
            where = at(group.file, group.line)
            name = f"{group.prefix} ({where})" if where else group.prefix
            yield Difference("data", (f"{name} gives {size(was)}",), (f"{name} gives {size(now)}",))


def _of(each: Measured, kind: str) -> str:
    return each.program if kind == "program" else each.conditions.get(kind, "")


def _lost(side: Sequence[Measured]) -> tuple[str, ...]:
    """What each recording of a side lacks, if all lack some."""
    lost = {each.lost for each in side}
    return () if "" in lost else tuple(sorted(lost))


def _load(side: Sequence[Measured]) -> Others | None:
    """The middle one of those that are known, if half of them are."""
    known = sorted((m.others for m in side if m.others is not None), key=lambda one: one.share)
    return known[(len(known) - 1) // 2] if 2 * len(known) >= len(side) else None


def _differ(one: Others | None, other: Others | None) -> bool:
    """Whether others made one side slower, or both by as much that they are no more alike."""
    if one is None or other is None:
        return False
    return (one.full or other.full) and abs(other.share - one.share) > MANY


def _read(side: Sequence[Measured]) -> Mapping[Group, float]:
    """Bytes of what each layer reads that all recordings have."""
    common = set.intersection(*(set(each.read) for each in side))
    return {group: float(np.median([each.read[group] for each in side])) for group in common}
