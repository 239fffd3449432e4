"""Other programs on the hosts of a recording: how many processors they kept busy.

What they take matters where little is left. A host that is half idle does not slow a program, so
what others do there counts as nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.timeline import present
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.standing import Floats, series
from stageprof_runtime.event import POOLED

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: Where more than this share of a host's processors is idle, nobody waits for one.
IDLE: Final = 0.15
#: More than this share of the processors is worth a word: a quarter of one of two.
MANY: Final = 0.125
#: Seconds between the first look at a host and the last, at the least.
LEAST_S: Final = 0.25


class Others(NamedTuple):
    """What others took of the host of which they took the largest share."""

    #: processors that they kept busy, on average; 0 where enough were idle
    kept: float
    #: processors that there are
    cpus: float

    @property
    def share(self) -> float:
        """Their part of all processors, 0 to 1."""
        return self.kept / self.cpus

    @property
    def said(self) -> str:
        """In words: `other programs kept 1.4 of 2 CPUs busy`."""
        return f"other programs kept {self.kept:.1f} of {count(round(self.cpus), 'CPU')} busy"


class _Grown(NamedTuple):
    """By how much a sum grew between its first sample and its last."""

    seconds: float
    by: float


def others(recording: Recording) -> Others | None:
    """What others took; None if no host was looked at for long enough.

    What the recorded processes start themselves counts as others', for nobody samples it; but not
    the tasks that the local scheduler of processes runs.
    """
    hosts: defaultdict[str, list[int]] = defaultdict(list)
    for number, place in enumerate(recording.store.places):
        hosts[place.host].append(number)
    busy, own = _grown(recording, "host.busy_s"), _grown(recording, "process.cpu_s")
    ours = _with_pools(recording, _by_process(recording, own))
    cpus = {place: float(values[-1]) for place, (_, values) in _series(recording, "host.cpus")}
    looked = (_of(places, busy, ours, cpus) for places in hosts.values())
    found = [one for one in looked if one is not None]
    return max(found, key=lambda one: one.share, default=None)


def _of(
    places: list[int],
    busy: Mapping[int, _Grown],
    own: Mapping[int, float],
    cpus: Mapping[int, float],
) -> Others | None:
    """Of one host, by the place that looked at it the longest."""
    looked = [p for p in places if p in busy and cpus.get(p, 0) >= 1]
    if not looked:
        return None
    longest = max(looked, key=lambda p: busy[p].seconds)
    seconds, total = busy[longest]
    there = cpus[longest]
    kept = (total - sum(own.get(p, 0.0) for p in places)) / seconds
    idle = there - total / seconds
    return Others(min(max(kept, 0.0), there) if idle <= IDLE * there else 0.0, there)


def _by_process(recording: Recording, own: Mapping[int, _Grown]) -> dict[int, float]:
    """Seconds of a processor of each place; of several in one process the first has them all."""
    firsts: dict[tuple[str, int], int] = {}
    for place in sorted(own, key=lambda p: -own[p].seconds):
        known = recording.store.places[place]
        firsts.setdefault((known.host, known.pid), place)
    return {place: own[place].by for place in firsts.values()}


def _with_pools(recording: Recording, own: Mapping[int, float]) -> dict[int, float]:
    """The same with what tasks took that ran in processes of a pool's."""
    runs, strings = recording.store.table("run"), recording.store.strings
    pools = [i for i in present(runs["worker"]) if strings[i].startswith(POOLED)]
    rows = np.isin(runs["worker"], pools) & (runs["cpu"] > 0)
    found = dict(own)
    for place in present(runs["place"][rows]):
        took = runs["cpu"][rows & (runs["place"] == place)].sum() / 1e9
        found[place] = found.get(place, 0.0) + float(took)
    return found


def _grown(recording: Recording, name: str) -> dict[int, _Grown]:
    found = {}
    for place, (t, values) in _series(recording, name):
        seconds, by = float(t[-1] - t[0]) / 1e9, float(values[-1] - values[0])
        if seconds >= LEAST_S and by >= 0:
            found[place] = _Grown(seconds, by)
    return found


def _series(recording: Recording, name: str) -> list[tuple[int, tuple[Ints, Floats]]]:
    """Samples of each place, without numbers that cannot be."""
    found = []
    for place, (t, values) in series(recording, name).items():
        kept = np.isfinite(values) & (values >= 0)
        if kept.any():
            found.append((place, (t[kept], values[kept])))
    return found
