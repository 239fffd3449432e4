"""Memory that is not given back from one computation to the next.

What remains of a worker's memory between computations is the least that was seen in each. A leak
grows by as much late as early; what an allocator keeps for later, caches that are bounded and
modules level off. Kept results (`managed`) are told from what nobody knows of (`unmanaged`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from dask.utils import key_split

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.embedded import Embedded, embedded, together
from stageprof_collectors.findings.misjudged import LEAST, undisturbed
from stageprof_collectors.findings.trend import Floats, Trend, trend
from stageprof_collectors.tables.memory import Taken

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: The first computation imports modules and fills pools: it is not compared.
WARM: Final = 1
#: Of more computations neighbours are taken together: enough for a trend.
MOST: Final = 60
#: What levels off has less than this part of its mean growth left in the second half.
STEADY: Final = 0.5
#: A kind of task explains a leak if what its runs leave behind is this part of it at least, and so
#: many times it at most: what leaves more has most of it given back later.
EXPLAINS: Final = 0.5
EXCEEDS: Final = 2.0


class Leak(NamedTuple):
    """What one worker does not give back."""

    place: int
    #: "managed": results that the program holds; "unmanaged": all else
    kind: str
    #: bytes for each computation
    trend: Trend
    #: computations that were compared
    times: int

    @property
    def grown(self) -> float:
        """Bytes that it grew by over all of them."""
        return self.trend.slope * (self.times - 1)


class Leaver(NamedTuple):
    """A kind of task whose runs leave memory behind on their worker."""

    prefix: str
    #: bytes by which the process grew in a run, beside the result: the median
    each: float
    #: how many there were on workers that leak
    runs: int

    @property
    def left(self) -> float:
        """Bytes that all of them left behind."""
        return self.each * self.runs


def leaks(recording: Recording, chance: float, least: float) -> list[Leak]:
    """Workers whose memory grows from computation to computation.

    Args:
        recording: of what.
        chance: how improbable growth without a trend has to be.
        least: bytes that it has to grow by over all computations.
    """
    bounds, step = _bounds(recording)
    found = []
    for place, taken in recording.memory.taken.items():
        at, remaining = _remaining(taken, bounds)
        times = int(at[-1] - at[0]) * step + 1 if len(at) else 0
        for kind, values in remaining.items():
            one = Leak(place, kind, trend(values, at * step), times)
            if _steady(one.trend, chance) and one.grown >= least:
                found.append(one)
    return found


def _steady(found: Trend, chance: float) -> bool:
    return found.chance <= chance and found.late >= STEADY * found.slope > 0


def _bounds(recording: Recording) -> tuple[Ints, int]:
    """When each n-th computation began, at most `MOST` of them, and the end of the last; and n."""
    timeline = recording.timeline
    start, stop = timeline.region.start, timeline.region.stop
    # While what a task sends is computed the task goes on, and so does what it holds.
    begun = sorted(g.arrived for g in timeline.graphs if g.arrived >= start and g.parent < 0)
    step = max(1, -(-len(begun) // MOST))
    return np.array([*begun[WARM::step], stop], np.int64), step


def _remaining(taken: Taken, bounds: Ints) -> tuple[Ints, dict[str, Floats]]:
    """The least of each kind within each computation that has a reading, and which those are."""
    ends = np.searchsorted(taken.t, bounds)
    at = np.flatnonzero(np.diff(ends) > 0)
    parts = [slice(a, b) for a, b in zip(ends[at].tolist(), ends[at + 1].tolist(), strict=True)]
    series = {"unmanaged": taken.process - taken.managed, "managed": taken.managed}
    return at, {k: np.array([v[p].min() for p in parts], float) for k, v in series.items()}


def leaver(recording: Recording, grown: Sequence[Leak]) -> Leaver | None:
    """The kind of task whose runs leave what these workers do not give back, if one does.

    Told from what a worker's process took more after a run than before it, beside what Dask took
    the result for, of runs that nothing disturbed; four or more of a kind.
    """
    around, runs = recording.memory.around, recording.timeline.runs
    places = [leak.place for leak in grown]
    here = np.flatnonzero(np.isin(around["place"], places))
    here = here[undisturbed(recording, around["row"][here])]
    rows = around["row"][here]
    left = around["after"][here] - around["before"][here] - runs["nbytes"][rows]
    every = recording.prefixes[np.isin(runs["wplace"], places)]
    known = recording.prefixes[rows]
    found = [
        Leaver(str(prefix), float(np.median(left[known == prefix])), int((every == prefix).sum()))
        for prefix in dict.fromkeys(known.tolist())
        if (known == prefix).sum() >= LEAST
    ]
    whole = sum(leak.grown for leak in grown)
    explain = [one for one in found if _alike(one.left, whole)]
    return max(explain, key=lambda one: one.left, default=None)


def carried(
    recording: Recording, grown: Sequence[Leak], who: Leaver | None = None
) -> Embedded | None:
    """The object of the user's that these workers keep, if one is as large as what they grew by.

    Or as what each of the runs that leave it behind does. A worker keeps what a task was sent with
    for as long as anybody wants the task's result.
    """
    whole = sum(leak.grown for leak in grown)
    things = embedded(recording)
    explain = [
        thing
        for thing in (*things, *_of_lines(things))
        if _alike(thing.sent_bytes, whole) or (who and brought(thing, who.prefix, who.each))
    ]
    return max(explain, key=lambda thing: thing.sent_bytes, default=None)


def _of_lines(things: Iterable[Embedded]) -> Iterator[Embedded]:
    """What each line sent one task each with, as one, whatever it is called and made by."""
    lines: defaultdict[tuple[str, int], list[Embedded]] = defaultdict(list)
    for thing in things:
        if thing.alone and thing.used_file:
            lines[thing.used_file, thing.used_line].append(thing)
    return (together(some) for some in lines.values() if len(some) > 1)


def brought(thing: Embedded, prefix: str, each: float) -> bool:
    """Whether tasks of a prefix carry an object about as large as what each of them leaves."""
    return prefix in map(key_split, thing.layers) and _alike(thing.each_bytes, each)


def _alike(part: float, whole: float) -> bool:
    return EXPLAINS * whole <= part <= EXCEEDS * whole
