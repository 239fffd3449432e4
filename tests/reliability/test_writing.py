"""How fast a recording is written, and how large it becomes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.collector import GATHER_S
from stageprof_collectors.storage.file import Writer
from stageprof_collectors.storage.merge import merge
from stageprof_runtime.batch import Row, pack
from stageprof_runtime.event import ASSIGN, FINISH, RUN, Place

ROWS = 1_000
BATCHES = 900
KEY = "random_sample-0123456789abcdef0123456789abcdef"


def shipped() -> Iterator[bytes]:
    """Batches of 1,000 rows: what the scheduler and one worker tell of tasks of 100 us."""
    chance = random.Random(4)
    scheduler = Place("scheduler", "host", 1, "tcp://host:8786", 0)
    worker = Place("worker", "host", 2, "tcp://host:40001", 0)
    run = 0
    for seq in range(BATCHES // 3):
        told: list[Row] = []
        ran: list[Row] = []
        for _ in range(ROWS):
            t = 10**12 + run * 100_000 + chance.randrange(20_000)
            stop = t + 60_000 + chance.randrange(30_000)
            key = (KEY, run // 1_000, run % 1_000)
            told.append((ASSIGN, run, t, worker.name, run - 1, key))
            told.append((FINISH, run, stop + chance.randrange(9_000), 0, 80_000, "ndarray"))
            stamps = (t + chance.randrange(9_000), t + 9_000 + chance.randrange(9_000))
            ran.append((RUN, run, *stamps, t + 20_000, stop, 7, 50_000, worker.name))
            run += 1
        yield pack(scheduler, 2 * seq, told[-1][2], told[:ROWS])
        yield pack(scheduler, 2 * seq + 1, told[-1][2], told[ROWS:])
        yield pack(worker, seq, ran[-1][5], ran)


@pytest.mark.alone
@pytest.mark.nightly
def test_events_are_written_faster_than_a_cluster_makes_them(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """L4: 300,000 rows a second in batches of 1,000, each a frame of its own; 60 bytes a row."""
    batches, rows = list(shipped()), ROWS * BATCHES
    found = {}
    for name, lot in (("apart", 1), ("gathered", round(GATHER_S / 0.1) * 3)):
        path = tmp_path / f"{name}.stageprof"
        started = time.perf_counter()
        with Writer(path, {}) as writer:
            for first in range(0, len(batches), lot):
                writer.write(*merge(batches[first : first + lot]))
        found[name] = rows / (time.perf_counter() - started), path.stat().st_size / rows
        store = Recording.open(path).store
        assert sum(store.rows(name) for name in ("assign", "finish", "run")) == rows
    record_property("L4 rows/s, bytes/row", found)
    for rate, size in found.values():
        assert rate > 300_000
        assert size < 60
