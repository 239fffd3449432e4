"""How much memory the workers of a run need, from what they were seen to take."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.finding import Fix
from stageprof_collectors.findings.quantity import size
from stageprof_collectors.tables.memory import Limits, Taken

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: More than what was seen: memory is looked at twice a second and at some tasks' ends, and a
#: shortage keeps workers from taking what they would have taken.
MARGIN: Final = 1.2
#: Sizes are rounded up to this, and above ten times this to ten times this.
GRAIN: Final = 100_000_000

_CODE: Final = """\
from dask.distributed import Client, LocalCluster

cluster = LocalCluster(n_workers={workers}, threads_per_worker={threads}, memory_limit="{size}")
client = Client(cluster)"""

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

    @property
    def text(self) -> str:
        """What to do, in words."""
        now, peak = size(self.limits.limit), size(self.taken.whole_peak)
        return _TEXT.format(need=size(self.need), now=now, peak=peak, plain=plain(self.need))


def sizing(recording: Recording) -> Sizing | None:
    """The worker that needs most for what it has; None if no worker has a limit."""
    memory, incidents = recording.memory, recording.incidents
    killed = {kill.worker: kill.taken for kill in incidents.kills}
    found = []
    for place, limits in memory.limits.items():
        name, taken = recording.store.places[place].name, memory.of(place)
        found.append(Sizing(name, limits, taken, need(limits, taken, killed.get(name, 0))))
    return max(found, key=lambda s: s.need / s.limits.limit, default=None)


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
    names = table["name"].replace("", None).dropna().nunique() or len(table)
    code = _CODE.format(
        workers=max(1, int(names)),
        threads=threads[0][0] if threads else 1,
        size=plain(found.need),
    )
    return Fix(found.text, code)
