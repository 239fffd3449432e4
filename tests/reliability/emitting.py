"""Workers that emit numbered rows, and what a recording holds of them: each is there or explained.

A row is a span of the label `NAME` whose thread says which emitter it is from, and whose bytes are
its number. Everything that a worker's ring is given is counted where it goes in.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client

import stageprof
from stageprof_runtime.batch import Row
from stageprof_runtime.clock import now_ns
from stageprof_runtime.event import SHARE, SPAN, TABLES
from stageprof_runtime.process import EMIT
from stageprof_runtime.ring import Ring
from stageprof_runtime.stage import STEP

NAME = "numbered"
#: Seconds between two bursts of an emitter.
BURST_S = 0.02
#: Tables of sums, which are made when a ring is emptied, not put into it.
SUMMED = ("sum", "share", "stack", "node", "flame", "cpu")

#: In a worker: rows that its ring was given since `watch`, and numbers that were emitted.
_given: itertools.count[int] = itertools.count()
#: And rows of shares, which are among those that are summed as well.
_shares: itertools.count[int] = itertools.count()
_emitted: dict[int, int] = {}


# -- on a worker ------------------------------------------------------------------------------


def watch() -> None:
    """Count what the rings of this process are given from now on; before a session begins."""
    emit = Ring.emit

    def counted(self: Ring, row: Row) -> None:
        next(_shares if row[0] == SHARE else _given)  # in one step, whatever other threads do
        emit(self, row)

    Ring.emit = counted  # type: ignore[method-assign]


def given() -> tuple[int, int]:
    """Rows that were given, and shares beside them; to be asked once, at the end."""
    return next(_given), next(_shares)


def numbered() -> int:
    """Numbers emitted so far."""
    return sum(_emitted.values())


async def emit(emitters: int, each: int, rate: float) -> None:
    """Emit `each` rows from so many threads, `rate` a second together; returns when it is done."""
    threads = [
        threading.Thread(target=_emit, args=(i, each, rate / emitters)) for i in range(emitters)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)


def _emit(emitter: int, each: int, rate: float) -> None:
    burst = max(1, round(rate * BURST_S))
    started = time.perf_counter()
    for first in range(0, each, burst):
        for number in range(first, min(first + burst, each)):
            t = now_ns()
            EMIT.row("worker", (SPAN, STEP["compute"], t, t + 1, emitter, NAME, number))
            _emitted[emitter] = number + 1
        ahead = started + (first + burst) / rate - time.perf_counter()
        if ahead > 0:  # the rate is what is given, not a condition to wait for
            time.sleep(ahead)


def resident() -> int:
    """Bytes of the process."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def waiting(dask_worker: Any) -> int:
    """Rows in the worker's ring."""
    (probe,) = [p for name, p in dask_worker.plugins.items() if name.startswith("stageprof")]
    return len(probe._ring)


# -- on a scheduler ---------------------------------------------------------------------------

_lags: list[float] = []
_looking: list[asyncio.Task[None]] = []


async def look() -> None:
    """Begin to note how late the loop is for its appointments, a hundred a second."""

    async def noting() -> None:
        while True:
            due = time.perf_counter() + 0.01
            await asyncio.sleep(0.01)  # the appointment
            _lags.append(time.perf_counter() - due)

    _looking.append(asyncio.ensure_future(noting()))


async def looked() -> list[float]:
    """What was noted, s."""
    _looking.pop().cancel()
    return _lags.copy()


# -- of a recording ---------------------------------------------------------------------------


def numbers(recording: stageprof.Recording) -> dict[tuple[int, int], list[int]]:
    """(pid, emitter) -> the numbers that the recording has, in its order."""
    table, strings = recording.store.table("span"), recording.store.strings
    ours = np.array([text == NAME for text in strings])[table["label"]]
    pids = np.array([place.pid for place in recording.store.places])[table["place"]]
    found: dict[tuple[int, int], list[int]] = {}
    for pid in np.unique(pids[ours]):
        for emitter in np.unique(table["thread"][ours & (pids == pid)]):
            mine = ours & (pids == pid) & (table["thread"] == emitter)
            found[int(pid), int(emitter)] = table["nbytes"][mine].tolist()
    return found


def missing(recording: stageprof.Recording, each: int) -> dict[int, int]:
    """Process -> how many of its numbers are not there; those that are came once, and in order."""
    lacks: dict[int, int] = {}
    for (pid, _), found in numbers(recording).items():
        assert all(a < b for a, b in itertools.pairwise(found))
        lacks[pid] = lacks.get(pid, 0) + each - len(found)
    return lacks


def stored(recording: stageprof.Recording) -> dict[int, int]:
    """Process -> rows of its worker that went through its ring."""
    store = recording.store
    out: dict[int, int] = {}
    for name in TABLES.values():
        if name in SUMMED or not store.rows(name):
            continue
        for place, rows in enumerate(np.bincount(store.table(name)["place"])):
            if store.places[place].role == "worker":
                pid = store.places[place].pid
                out[pid] = out.get(pid, 0) + int(rows)
    return out


def dropped(recording: stageprof.Recording) -> dict[int, dict[str, int]]:
    """Process -> what its worker dropped, by reason."""
    origins = [o for o in recording.store.origins if o.place.role == "worker"]
    return {o.place.pid: o.drops for o in origins}


# -- recorders --------------------------------------------------------------------------------

_RECORDER = """
import sys, stageprof, distributed
client = distributed.Client(sys.argv[1])
with stageprof.profile(sys.argv[2]):
    print("on", flush=True)
    sys.stdin.readline()
print("off", flush=True)
"""


@contextmanager
def recorder(address: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that records a cluster until it reads a line."""
    line = [sys.executable, "-c", _RECORDER, address, str(path)]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def by_pid(client: Client, function: Any) -> dict[int, Any]:
    """What a function gives on each worker, by the worker's process."""
    pids = client.run(os.getpid)
    return {pids[worker]: value for worker, value in client.run(function).items()}
