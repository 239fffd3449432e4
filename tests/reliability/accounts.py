"""Tasks for tests of faults, and whether a recording accounts for each of them."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import Any

import psutil
from distributed import Client

import stageprof
from stageprof_runtime.event import STATUS

#: Seconds that a worker may wait for the processor, or the scheduler to notice its death.
BUSY_S = 2.0


def inc(x: int) -> int:
    return x + 1


def nap(x: int, seconds: float = 0.01) -> int:
    time.sleep(seconds)
    return x + 1


def right(n: int) -> list[int]:
    """What `inc` or `nap` gives for the first `n` numbers."""
    return list(range(1, n + 1))


def pid() -> int:
    return os.getpid()


def processes(client: Client) -> dict[str, int]:
    """Address -> process of the workers that answer; one that died may still be listed."""
    found = client.run(pid, on_error="ignore").items()
    return {worker: process for worker, process in found if psutil.pid_exists(process)}


def untold(recording: stageprof.Recording) -> Counter[str]:
    """Worker -> tasks that ended well, as the scheduler saw, and of which the worker told nothing.

    Counted from the tables, apart from what the product says of it.
    """
    store = recording.store
    run, finish, assign = (store.table(name) for name in ("run", "finish", "assign"))
    told = set(run["run"].tolist())
    given = dict(zip(assign["run"].tolist(), assign["worker"].tolist(), strict=True))
    ended = zip(finish["run"].tolist(), finish["status"].tolist(), strict=True)
    done = (number for number, status in ended if STATUS[status] == "memory")
    return Counter(store.strings[given[number]] for number in done if number not in told)


def closed(recording: stageprof.Recording) -> None:
    """The accounts are closed: what is missing is only the end of workers that died, as is said."""
    coverage, stages = recording.coverage(), recording.stages()["wall_s"]
    tails = coverage["tails_lost"]
    assert recording.complete
    assert coverage["batches_lost"] == 0
    assert coverage["dropped"] == {}
    missing = {w: n for w, n in untold(recording).items() if w not in coverage["not_instrumented"]}
    assert missing == {w: tail["tasks"] for w, tail in tails.items() if tail["tasks"]}
    assert abs(stages.sum() - recording.wall) < 0.01 * recording.wall
    assert twice(recording) == []


def twice(recording: stageprof.Recording) -> list[tuple[Any, ...]]:
    """Samples that are there more than once: each is of one instant of one place."""
    columns = recording.store.table("sample")
    rows = zip(*(columns[name].tolist() for name in ("place", "t", "name")), strict=True)
    return [row for row, times in Counter(rows).items() if times > 1]
