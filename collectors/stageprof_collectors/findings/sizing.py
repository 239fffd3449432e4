"""How much memory the workers of a run need, from what they were seen to take."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.finding import Fix
from stageprof_collectors.findings.quantity import size
from stageprof_collectors.tables.crew import Crew
from stageprof_collectors.tables.memory import Limits, Taken

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: More than what was seen: memory is looked at twice a second and at some tasks' ends, and a
#: shortage keeps workers from taking what they would have taken.
MARGIN: Final = 1.2
#: Of the workers' memory what can be kept in it: beyond that they begin to spill.
ROOM: Final = 0.6
#: Sizes are rounded up to this, and above ten times this to ten times this.
GRAIN: Final = 100_000_000

_CLUSTER: Final = """\
from dask.distributed import Client, LocalCluster

{note}cluster = LocalCluster(n_workers={n}, threads_per_worker={threads}, memory_limit="{size}")
client = Client(cluster)"""

#: Where a machine has not so much: as many workers, which work on less at once.
_LESS: Final = (
    "# fewer tasks at once need less memory, and take longer where it was not short of it\n"
)

_HOSTS: Final = """\
# on each host, in place of what starts its workers now; fewer tasks at once need less memory
# dask worker tcp://scheduler:8786 --nworkers {n} --nthreads {threads} --memory-limit {size}"""

_SHORT: Final = (
    "A worker's process would have taken up to {peak} with everything in memory; it has {now}. "
    "With {need} for each of its {workers} workers the machine would need {all}, and it has "
    "{machine}. So have less in memory at once: smaller chunks or partitions, fewer threads (the "
    "code below), or results written by the workers and not kept. Or take a larger machine, or "
    "several."
)

_TEXT: Final = (
    "Give each worker {need} instead of {now}: a worker's process would have taken up to {peak} "
    "with everything in memory. With `dask worker` that is `--memory-limit {plain}`; other "
    "clusters have an option for a worker's memory or the kind of machine. If there is no more "
    "memory to be had, use smaller chunks or partitions, or more workers, so that fewer of them "
    "are in one worker at a time."
)


@dataclass(frozen=True)
class Sizing:
    """What a worker has, took and needs, in bytes: of the worker that is shortest of memory."""

    #: its address
    worker: str
    limits: Limits
    taken: Taken
    need: int
    #: memory of its machine and how many workers are on it, if that is too little for all of
    #: them to have what it needs; else 0, or if it is not known
    machine: int = 0
    workers: int = 0

    @property
    def text(self) -> str:
        """What to do, in words."""
        need, now, peak = map(size, (self.need, self.limits.limit, self.taken.whole_peak))
        if self.machine:
            whole, machine = size(self.need * self.workers), size(self.machine)
            return _SHORT.format(
                need=need, now=now, peak=peak, workers=self.workers, all=whole, machine=machine
            )
        return _TEXT.format(need=need, now=now, peak=peak, plain=plain(self.need))

    def likely(self, saving: tuple[float, float]) -> tuple[float, float]:
        """What a run without a shortage saves, seconds: nothing at least, if none can be had."""
        return (0.0, saving[1]) if self.machine else saving


def sizing(recording: Recording) -> Sizing | None:
    """The worker that needs most for what it has; None if no worker has a limit."""
    memory, incidents = recording.memory, recording.incidents
    killed = {kill.worker: kill.taken for kill in incidents.kills}
    found = []
    for place, limits in memory.limits.items():
        name, taken = recording.store.places[place].name, memory.of(place)
        found.append(Sizing(name, limits, taken, need(limits, taken, killed.get(name, 0))))
    worst = max(found, key=lambda s: s.need / s.limits.limit, default=None)
    return worst and _housed(recording, worst)


def _housed(recording: Recording, found: Sizing) -> Sizing:
    """With its machine, if that has too little memory."""
    places = recording.store.places
    place = next(i for i, p in enumerate(places) if p.name == found.worker)
    machine = recording.memory.of_machine(place)
    workers = len(Crew(recording).on_host(places[place].host))
    short = found.need * workers > machine > 0
    return replace(found, machine=machine, workers=workers) if short else found


def kept_in_memory(recording: Recording, nbytes: float, share: float = ROOM) -> bool:
    """Whether the workers' memory has room for results; yes where that is not known."""
    workers = recording.workers()
    room = float(workers["memory_limit"][~workers["left"].astype(bool)].sum())
    return room <= 0 or nbytes <= share * room


def need(limits: Limits, taken: Taken, killed: int = 0) -> int:
    """The memory limit with which a worker would have stayed below its thresholds, bytes.

    Args:
        limits: as they were.
        taken: what it took.
        killed: what its process took when its nanny ended it; 0 if it did not.
    """
    first = limits.spill or limits.pause or limits.terminate or 1.0
    whole = max(taken.whole_peak, killed) / first
    results = taken.results_peak / limits.target if limits.target else 0.0
    return rounded(max(whole, results) * MARGIN)


def rounded(nbytes: float) -> int:
    """The next size that people use."""
    grain = GRAIN if nbytes < 10 * GRAIN else GRAIN * (10 if nbytes >= 100 * GRAIN else 1)
    return math.ceil(round(nbytes / grain, 6)) * grain


def plain(nbytes: int) -> str:
    """A size as Dask reads it: `1.3GB`, `600MB`."""
    if nbytes < 10**9:
        return f"{nbytes // 10**6}MB"
    return f"{nbytes / 1e9:.1f}".removesuffix(".0") + "GB"


def bigger(recording: Recording, found: Sizing) -> Fix:
    """The fix: workers of the size that is needed."""
    table = recording.workers()
    threads = Counter(int(t) for t in table["threads"] if t > 0).most_common(1)
    each = threads[0][0] if threads else 1
    if found.machine:
        hosts = len({member.host for member in Crew(recording).fullest})
        return Fix(found.text, _fewer(found, each, hosts))
    names = table["name"].replace("", None).dropna().nunique() or len(table)
    workers = max(1, int(names))
    return Fix(found.text, local_cluster(workers, each, found.need))


def local_cluster(workers: int, threads: int, nbytes: int, note: str = "") -> str:
    """Code for a cluster of so many workers, each with so many threads and bytes."""
    return _CLUSTER.format(n=workers, threads=threads, size=plain(nbytes), note=note)


def _fewer(found: Sizing, threads: int, hosts: int) -> str:
    """As many threads as the machine has memory for, by what those there were needed."""
    fit = int(threads * found.machine / (found.need * found.workers))
    workers = found.workers if fit else max(1, found.machine // found.need)
    fit, each = max(1, fit), found.machine // workers
    if hosts > 1:
        return _HOSTS.format(n=workers, threads=fit, size=plain(each))
    return local_cluster(workers, fit, each, _LESS)
