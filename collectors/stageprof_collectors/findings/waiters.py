"""Threads that wait in tasks, for storage or a service: how busy they are, what more would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import LOCAL
from stageprof_collectors.findings.holdup import holdups
from stageprof_collectors.others import beside
from stageprof_collectors.replay.apart import concurrency
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.crew import Crew

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

Rows = NDArray[np.int64]

#: Threads of a worker that the fix asks for at most: more requests at a time than this are refused
#: or queued by many stores.
THREADS: Final = 16
#: Of a process's time: so much is computed where its threads wait for one another.
FULL: Final = 0.8
#: Of a processor: tasks that read compute less, all those of a process together.
LEAST: Final = 0.1
#: Likewise of what waits for an answer, even where others leave it hardly any.
ASKING: Final = 0.02

_CODE: Final = """\
from distributed import Client, LocalCluster

cluster = LocalCluster(n_workers={workers}, threads_per_worker={threads})
client = Client(cluster)
# on other clusters: dask worker {address} --nthreads {threads}"""
_LOCAL_CODE: Final = """\
import dask

dask.config.set(scheduler="threads", num_workers={threads})"""


class Waiters(NamedTuple):
    """What can wait at a time."""

    #: workers of the cluster, and the threads of each; or 1, and those of a local scheduler
    workers: int
    each: int
    local: bool = False

    def more(self, tasks: int) -> int:
        """How many threads of each would let so many tasks wait at once, at most `THREADS`."""
        return int(min(THREADS, max(2 * self.each, -(-tasks // self.workers))))

    def code(self, threads: int) -> str:
        """What gives each so many threads."""
        if self.local:
            return _LOCAL_CODE.format(threads=threads)
        address = "tcp://scheduler:8786"
        return _CODE.format(workers=self.workers, threads=threads, address=address)


def busy(recording: Recording) -> NDArray[np.float64]:
    """Of each run's time the part that it computed, or waited for the GIL or a processor."""
    runs = recording.timeline.runs
    computed = runs["cpu"] / np.maximum(runs["stop"] - runs["start"], 1)
    waited, had = recording.timeline.gil.shares, had_of(recording, LEAST)
    if waited is None or had:
        full = _full(recording, had, 1.0 if waited is None else np.inf)
        waited = full if waited is None else np.maximum(waited, full)
    found: NDArray[np.float64] = np.clip(computed + waited, 0, 1)
    return found


def occupied(recording: Recording) -> NDArray[np.float64]:
    """Of each run's time the part in which more threads would not have let it go on.

    It computed, waited for the GIL or a processor, for a lock or the like of Dask's, or for tasks
    that it had handed over.
    """
    timeline, runs = recording.timeline, recording.timeline.runs
    held = np.zeros(len(runs["run"]))
    for holdup in holdups(recording):
        for run, ns in holdup.waited.items():
            held[run] += ns
    part = busy(recording) + held / np.maximum(runs["stop"] - runs["start"], 1)
    parents = [timeline.run_of(g.parent, g.place) for g in timeline.graphs if g.parent >= 0]
    part[[row for row in parents if row >= 0]] = 1
    found: NDArray[np.float64] = np.clip(part, 0, 1)
    return found


def had_of(recording: Recording, least: float) -> dict[int, float]:
    """Of a processor what a process can have had, by its place, where hardly any was idle.

    It is `least` at the least, and 1 at most; a place where some were idle is not in it.
    """
    numbers, had = recording.timeline.at.numbers, {}
    for places, found in beside(recording):
        mine = [place for place in numbers if place in places]
        if found.full and mine:
            left = (found.cpus - found.kept) / len(mine)
            had.update(dict.fromkeys(mine, float(np.clip(left, least, 1))))
    return had


def _full(recording: Recording, had: Mapping[int, float], rest: float) -> NDArray[np.float64]:
    """1 for runs during which their process computed nearly all that it had (else `rest`)."""
    runs, of_place = recording.timeline.runs, recording.timeline.at
    full = np.zeros(len(runs["run"]))
    for place in of_place.numbers:
        mine = of_place.of(place)
        start, stop, cpu = (runs[name][mine] for name in ("start", "stop", "cpu"))
        enough = FULL * had.get(place, rest) * np.maximum(stop - start, 1)
        full[mine] = _computed(start, stop, cpu) >= enough
    return full


def _computed(start: Rows, stop: Rows, cpu: Rows) -> NDArray[np.float64]:
    """What all of these runs computed during each, ns."""
    until = computed_until(start, stop, cpu)
    found: NDArray[np.float64] = np.interp(stop, *until) - np.interp(start, *until)
    return found


def computed_until(start: Rows, stop: Rows, cpu: Rows) -> tuple[Rows, NDArray[np.float64]]:
    """Some instants, and what runs had computed by then, ns: evenly over the time of each."""
    rate = cpu / np.maximum(stop - start, 1)
    order = np.argsort(t := np.concatenate([start, stop]), kind="stable")
    t, rates = t[order], np.cumsum(np.concatenate([rate, -rate])[order])
    return t, np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(t))])


def length(recording: Recording, rows: Rows) -> NDArray[np.float64]:
    """Seconds of runs; never none at all."""
    runs = recording.timeline.runs
    found: NDArray[np.float64] = np.maximum(runs["stop"] - runs["start"], 1)[rows] / 1e9
    return found


def waiters(recording: Recording, rows: Rows) -> Waiters:
    """Those of runs, all on a cluster or all on a local scheduler."""
    runs = recording.timeline.runs
    if runs["run"][rows[0]] >= LOCAL:
        at_once = concurrency(runs["start"][rows], runs["stop"][rows])
        return Waiters(1, round(float(at_once.max())), local=True)
    there = Crew(recording).fullest
    return Waiters(max(1, len(there)), max((member.threads for member in there), default=1))


def saving(recording: Recording, them: Waiters, threads: int, cost: float) -> tuple[float, float]:
    """Of tasks on the user's own thread (the synchronous scheduler) at most what they cost there.

    A replay has that thread as it was.
    """
    saved = recording.replay.saving(Change(threads=threads))
    if not them.local or them.each > 1:
        return saved
    return 0.0, min(saved[1] or cost, cost * (1 - 1 / threads))
