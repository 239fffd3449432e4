"""What threads would be as processes: none waits for another's GIL, and what they share is copied.

A run keeps its time but for what it waited for the GIL, and gets what it needs from runs of other
threads of its process by way of a copy, as it now gets what other workers made.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd

from stageprof_collectors.account.attempts import lanes
from stageprof_collectors.findings.standing import Standing, left_of, without
from stageprof_collectors.replay.change import Change
from stageprof_collectors.replay.relief import Covered, by_host, run_windows
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.profiles.gil import Floats
    from stageprof_collectors.recording import Recording

#: Seconds that it takes to ask another worker for results, and bytes a second where none were
#: moved in the recording: between processes of one machine, dumped, sent and loaded.
ASK_S: Final = 0.001
BYTES_PER_S: Final = 500e6
#: A rate is measured from so many bytes at least.
ENOUGH: Final = 10_000_000
#: Tasks that neither compute nor wait for the GIL for so much of their time wait for something
#: else: they need their threads.
ELSEWHERE: Final = 0.25
#: Parts of a run in which a thread takes it from its worker's loop, or hands it back.
_HANDS: Final = ("begin", "lag")
_MOVING: Final = tuple(STEP[name] for name in ("data.transfer", "data.dump", "data.load"))


class Processes(NamedTuple):
    """Worker processes of a host instead of threads."""

    number: int
    #: threads of each, and of the largest worker now
    threads: int
    before: int

    def __str__(self) -> str:
        if self.threads == 1:
            return "one thread for each worker process"
        return f"{self.number} worker processes of {self.threads} threads each"

    @property
    def gone(self) -> float:
        """The part of the waiting for one another that is gone with so few threads together.

        Of a worker of one thread none: what waits there are tasks that seceded, or threads of the
        user's.
        """
        return 1 - (self.threads - 1) / (self.before - 1) if self.before > 1 else 0.0


def processes(recording: Recording, waited: Floats) -> Processes:
    """As many as there are threads now, but no more than the host has processors.

    With one thread each, if tasks do nothing but compute; tasks that wait for storage or for the
    network as well keep as many threads as they have.

    Args:
        recording: the run.
        waited: share of each run's time that is waiting for the GIL.
    """
    workers, runs = recording.workers(), recording.timeline.runs
    crew = Crew(recording)
    hosts = {member.host for member in crew.fullest}
    here = [sum(member.threads for member in crew.on_host(host)) for host in hosts]
    threads = max(here, default=int(workers["threads"].max()))
    most = int(workers["threads"].max())
    number = max(1, min(threads, int(workers["cpus"].max()) or threads))
    length = np.maximum(runs["stop"] - runs["start"], 1)
    other = np.clip(1 - runs["cpu"] / length - waited, 0, 1) * length
    seen = runs["seen"] == 1
    if other[seen].sum() < ELSEWHERE * length[seen].sum():
        return Processes(number, 1, most)
    return Processes(number, min(ceil(threads / number), most), most)


def apart(recording: Recording, waited: Floats, part: float = 1.0) -> Change:
    """The change to a process for each thread.

    Args:
        recording: the run.
        waited: share of each run's time that is waiting for the GIL and would be gone.
        part: of what workers' event loops, and the thread itself, wait for the GIL between two runs
            of a thread, what would be gone. Where a process has one thread nobody holds it then.
    """
    runs = recording.timeline.runs
    whole = np.maximum(runs["stop"] - runs["start"], 1) / 1e9
    workers = [i for i, place in enumerate(recording.store.places) if place.role == "worker"]
    loops = {p: spans for p, spans in recording.timeline.gil.loops.items() if p in workers}
    between = without(recording, loops, compute=False, part=part) if loops else Change()
    between = _taking_over(recording, between, loops, part)
    return replace(between, compute=1 - waited + _copying(recording) / whole)


def _taking_over(recording: Recording, between: Change, loops: Standing, part: float) -> Change:
    """The same where a thread takes a run from its loop and hands it back: either may wait."""
    runs, gil = recording.timeline.runs, recording.timeline.gil
    windows = run_windows(recording, runs)
    left = {name: np.ones(len(runs["run"])) for name in _HANDS}
    rows = Rows(pd.factorize(lanes(runs))[0])
    for mine in map(rows.of, rows.numbers):
        place, thread = (int(runs[name][mine[0]]) for name in ("wplace", "thread"))
        held = Covered([*loops.get(place, ()), *(gil.waits(place, thread) or ())])
        for name in _HANDS:
            start, stop = windows[name]
            left[name][mine] = left_of([held], start[mine], stop[mine], part)
    return replace(between, begin=left["begin"], lag=left["lag"])


def _copying(recording: Recording) -> Floats:
    """Seconds of copying that each run would need more than it did."""
    runs, needs = recording.timeline.runs, recording.timeline.depends
    row = needs.user
    on = needs.on
    shared = (runs["wplace"][row] == runs["wplace"][on]) & (runs["wplace"][row] >= 0)
    shared &= runs["thread"][row] != runs["thread"][on]
    row, on = row[shared], on[shared]
    seconds = ASK_S + runs["nbytes"][on] / _rate(recording)
    return np.bincount(row, seconds, minlength=len(runs["run"])).astype(np.float64)


def _rate(recording: Recording) -> float:
    """Bytes a second between workers: as measured, if enough was moved."""
    entries = recording.account.entries
    mine = [entry for (step, _), entry in entries.items() if step in _MOVING]
    nbytes = sum(e.nbytes for (step, _), e in entries.items() if step == _MOVING[0])
    busy = sum(entry.busy for entry in mine) / 1e9
    return nbytes / busy if nbytes >= ENOUGH and busy > 0 else BYTES_PER_S


def freed(recording: Recording, waited: Floats) -> Floats:
    """What share of its time each run would be rid of: what it waited, if processors allow it.

    A run's own share is known from a few looks, so the bound is that of all runs of its kind
    together.
    """
    runs = recording.timeline.runs
    length = np.maximum(runs["stop"] - runs["start"], 1).astype(float)
    _, kind = recording.layered.kinds()
    room = np.bincount(kind, (1 - processor_bound(recording)) * length)
    asked = np.bincount(kind, np.maximum(waited, 0.0) * length)
    part = np.minimum(1.0, room / np.maximum(asked, 1.0))
    found: Floats = np.clip(waited, 0.0, 1.0) * part[kind]
    return found


def processor_bound(recording: Recording) -> Floats:
    """What share of each run's time would stay if only its host's processors were short."""
    runs = recording.timeline.runs
    length = np.maximum(runs["stop"] - runs["start"], 1)
    own = np.clip(runs["cpu"] / length, 0.0, 1.0)
    cpus = dict(recording.workers().groupby("host")["cpus"].max())
    bound = own.copy()
    for host, mine in by_host(recording).items():
        beside = concurrency(runs["start"][mine], runs["stop"][mine])
        bound[mine] = own[mine] * np.maximum(1.0, beside / max(1.0, float(cpus.get(host, 1))))
    found: Floats = np.minimum(bound, 1.0)
    return found


def concurrency(starts: Ints, stops: Ints) -> Floats:
    """How many of these intervals were going on in the middle of each."""
    middle = (starts + stops) // 2
    begun = np.searchsorted(np.sort(starts), middle, side="right")
    ended = np.searchsorted(np.sort(stops), middle, side="right")
    found: Floats = np.maximum(begun - ended, 1).astype(float)
    return found
