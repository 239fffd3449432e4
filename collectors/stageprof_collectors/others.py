"""Other programs on the hosts of a recording: how many processors they kept busy.

It is what the kernel says that a host's processors did, without what the recorded processes say
that they took, both between the same two instants: from when all of a host's processes had been
looked at once to when the first of them was looked at last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.timeline import present
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.standing import Floats, series
from stageprof_runtime.event import POOLED

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Columns, Ints
    from stageprof_collectors.recording import Recording

#: Where more than this share of a host's processors is idle, nobody waits for one.
IDLE: Final = 0.15
#: More than this share of the processors is worth a word: a quarter of one of two.
MANY: Final = 0.125
#: What is known of less time, ns, or of a smaller part of what was looked at, says nothing.
LEAST_NS: Final = 250_000_000
PART: Final = 1 / 3
#: Sums of one process, or of one machine, agree as well as this, seconds: a kernel counts in ticks.
AGREE_S: Final = 0.25
#: Instants at which the sums of all machines are compared at once.
_INSTANTS: Final = 8


class Others(NamedTuple):
    """What others took of the host of which they took the largest share."""

    #: processors that they kept busy, on average
    kept: float
    #: processors that there are
    cpus: float
    #: whether hardly any was idle, so that one had to be waited for
    full: bool = True

    @property
    def share(self) -> float:
        """Their part of all processors, 0 to 1."""
        return self.kept / self.cpus

    @property
    def many(self) -> bool:
        """Whether they made a program slower that wanted the processors as well."""
        return self.full and self.share > MANY

    @property
    def said(self) -> str:
        """In words: `other programs kept 1.4 of 2 CPUs busy`."""
        return f"other programs kept {self.kept:.1f} of {count(round(self.cpus), 'CPU')} busy"


class _Sum(NamedTuple):
    """Seconds of processors so far, at some instants."""

    t: Ints
    seconds: Floats

    def between(self, start: int, stop: int) -> float:
        """How many between two instants."""
        low, high = np.interp([start, stop], self.t, self.seconds)
        return float(high - low)

    def agrees(self, other: _Sum) -> bool:
        """Whether both count the same."""
        apart = np.interp(other.t, self.t, self.seconds) - other.seconds
        inside = (other.t >= self.t[0]) & (other.t <= self.t[-1])
        return bool(inside.any() and (np.abs(apart[inside]) < AGREE_S).all())


Sums = dict[int, _Sum]


class _Columns:
    """The sums of many machines: which of them may agree with one, without a look at each."""

    def __init__(self, sums: Sequence[_Sum]) -> None:
        self._first, self._last = np.array([(one.t[0], one.t[-1]) for one in sums], np.int64).T
        self._at = np.linspace(self._first.min(), self._last.max(), _INSTANTS + 2)[1:-1]
        self._seconds = np.array([np.interp(self._at, one.t, one.seconds) for one in sums])

    def like(self, one: _Sum) -> list[int]:
        """Those that are near it at each instant around which both were looked at."""
        after = np.searchsorted(one.t, self._at).clip(1, len(one.t) - 1)
        (begin, end), (low, high) = ((c[after - 1], c[after]) for c in (one.t, one.seconds))
        both = (self._first[:, None] <= begin) & (end <= self._last[:, None])
        both &= (begin <= self._at) & (self._at <= end)
        near = (self._seconds > low - AGREE_S) & (self._seconds < high + AGREE_S)
        at_once = (self._first <= one.t[-1]) & (one.t[0] <= self._last)
        found: list[int] = np.flatnonzero(at_once & (near | ~both).all(axis=1)).tolist()
        return found


def others(recording: Recording) -> Others | None:
    """What others took; None where not all processes of a host were looked at for long enough.

    What the recorded processes start themselves counts as others', for nobody samples it; but not
    the tasks that the local scheduler of processes runs.
    """
    found = (one for _, one in beside(recording))
    return max(found, key=lambda one: one.share, default=None)


def beside(recording: Recording) -> list[tuple[list[int], Others]]:
    """What others took of each machine where it is known, after the places that are on it."""
    busy, own = _sums(recording, "host.busy_s"), _sums(recording, "process.cpu_s")
    cpus = {p: float(v[-1]) for p, (_, v) in _series(recording, "host.cpus") if v[-1] >= 1}
    machines = _machines(recording, {p: s for p, s in busy.items() if p in cpus})
    pooled = _pooled(recording)
    found = ((places, _of(recording, places, busy, own, cpus, pooled)) for places in machines)
    return [(places, one) for places, one in found if one is not None]


def _of(
    recording: Recording,
    places: Sequence[int],
    busy: Sums,
    own: Sums,
    cpus: dict[int, float],
    pooled: Columns,
) -> Others | None:
    """Of one machine, by the place that looked at it the longest."""
    looked = [p for p in places if p in busy and p in cpus]
    if not looked or any(p not in own for p in places):
        return None
    longest = max(looked, key=lambda p: _span(busy[p]))
    there, did = cpus[longest], busy[longest]
    ours = _processes(recording, places, own)
    start = max(int(one.t[0]) for one in (did, *ours))
    stop = min(int(one.t[-1]) for one in (did, *ours))
    if stop - start < max(LEAST_NS, PART * _span(did)):
        return None
    took = sum(one.between(start, stop) for one in ours) + _in_pools(pooled, places, start, stop)
    per_s = 1e9 / (stop - start)
    total, mine = did.between(start, stop) * per_s, took * per_s
    kept = min(max(total - mine, 0.0), there)
    return Others(kept, there, full=there - total <= IDLE * there)


def _span(one: _Sum) -> int:
    return int(one.t[-1]) - int(one.t[0])


# -- which counts are of what ----------------------------------------------------------------------


def _machines(recording: Recording, busy: Sums) -> list[list[int]]:
    """Places by machine: by the name of their host, and containers whose kernel counts the same."""
    hosts: defaultdict[str, list[int]] = defaultdict(list)
    for number, place in enumerate(recording.store.places):
        hosts[place.host].append(number)
    alone = [places for places in hosts.values() if not _known(busy, places)]
    return [*_joined(busy, [p for p in hosts.values() if _known(busy, p)]), *alone]


def _joined(busy: Sums, hosts: list[list[int]]) -> list[list[int]]:
    """Hosts of which each was looked at, those together that are one machine."""
    longest = [max(_known(busy, places), key=_span) for places in hosts]
    columns = _Columns(longest) if hosts else None
    #: by the host that was looked at longest: all places of the machine
    machines: dict[int, list[int]] = {}
    for i, one in enumerate(longest):
        like = columns.like(one) if columns else ()
        same = next((j for j in like if j in machines and longest[j].agrees(one)), i)
        places = machines.pop(same, []) + hosts[i]
        machines[max(same, i, key=lambda j: _span(longest[j]))] = places
    return list(machines.values())


def _known(sums: Sums, places: Iterable[int]) -> list[_Sum]:
    return [sums[place] for place in places if place in sums]


def _processes(recording: Recording, places: Iterable[int], own: Sums) -> list[_Sum]:
    """What each process took: several places of one, at once or in turn, tell of the same."""
    numbers: defaultdict[tuple[str, int], list[_Sum]] = defaultdict(list)
    for place in places:
        known = recording.store.places[place]
        numbers[known.host, known.pid].append(own[place])
    return [one for sums in numbers.values() for one in _merged(sums)]


def _merged(sums: list[_Sum]) -> list[_Sum]:
    """One sum of several, if that never falls: else they are of containers of one name."""
    t = np.concatenate([one.t for one in sums])
    order = np.argsort(t, kind="stable")
    seconds = np.concatenate([one.seconds for one in sums])[order]
    falls = (np.diff(seconds) < -AGREE_S).any()
    return sums if falls else [_Sum(t[order], np.maximum.accumulate(seconds))]


def _pooled(recording: Recording) -> Columns:
    """The runs that were in processes of a pool's."""
    runs, strings = recording.store.table("run"), recording.store.strings
    pools = [i for i in present(runs["worker"]) if strings[i].startswith(POOLED)]
    if pools:  # to put the times of all runs on one clock takes long
        runs = recording.timeline.read("run", "stop")
    rows = np.flatnonzero(np.isin(runs["worker"], pools) & (runs["cpu"] > 0))
    return {name: runs[name][rows] for name in ("place", "stop", "cpu")}


def _in_pools(pooled: Columns, places: Sequence[int], start: int, stop: int) -> float:
    """Seconds that tasks took which ran in processes of a pool's."""
    rows = np.isin(pooled["place"], places) & (pooled["stop"] > start) & (pooled["stop"] <= stop)
    return float(pooled["cpu"][rows].sum() / 1e9)


# -- samples ---------------------------------------------------------------------------------------


def _sums(recording: Recording, name: str) -> Sums:
    """Of each place that looked twice."""
    return {
        place: _Sum(t, np.maximum.accumulate(seconds))
        for place, (t, seconds) in _series(recording, name)
        if len(t) > 1
    }


def _series(recording: Recording, name: str) -> list[tuple[int, tuple[Ints, Floats]]]:
    """Samples of each place, without numbers that cannot be."""
    found = []
    for place, (t, values) in series(recording, name).items():
        kept = np.isfinite(values) & (values >= 0)
        if kept.any():
            found.append((place, (t[kept], values[kept])))
    return found
