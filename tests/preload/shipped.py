"""Batches as places ship them, and segments made of them without a cluster."""

from __future__ import annotations

from pathlib import Path

import stageprof
from stageprof_collectors.storage.flight import Window, assemble
from stageprof_runtime.batch import Row, pack
from stageprof_runtime.event import ASSIGN, FINISH, FLAME, GRAPH, MARK, NODE, RUN, Place
from stageprof_runtime.flight.segments import Segments

SCHEDULER = Place("scheduler", "host", 1, "tcp://host:8786", 0)
WORKER = Place("worker", "host", 2, "tcp://host:1", 0)
#: Ten minutes and more than is ever written here.
ENOUGH = 10.0, 100_000_000
MS = 1_000_000
#: What a recorder says of itself.
ABOUT = {"address": SCHEDULER.name, "minutes": 10, "size": 1_000_000, "stageprof": "0.1.0"}


def shipped(
    place: Place, seq: int, *rows: Row, lost: int = 0, calls: int = 0, running: int = 0
) -> bytes:
    """A batch of a place, packed at its `seq`-th 100 ms."""
    drops = {"ring full": lost} if lost else {}
    cost = {"hook": [calls, calls * 1000]}
    counts = (running, running, 0)
    return pack(place, seq, at(seq), rows, drops=drops, cost=cost, counts=counts)


def at(seq: int) -> int:
    """When a place packs its batch of this number, ns."""
    return 1000 * MS + seq * 100 * MS


def hello() -> list[bytes]:
    """What scheduler and worker tell once: batch 0 of both."""
    return [
        shipped(SCHEDULER, 0, (MARK, 1, "worker seen", f"{WORKER.name} 2 0 alice")),
        shipped(
            WORKER,
            0,
            (MARK, 1, "worker name", "alice"),
            (NODE, 0, -1, "outer", "/home/me/etl.py", 3),
            (NODE, 1, 0, "inner", "/home/me/etl.py", 9),
        ),
    ]


def look(seq: int) -> bytes:
    """A look at the worker, which stood in `inner`."""
    return shipped(WORKER, seq, (FLAME, at(seq), 14, "inc", "", 1, 1, 50 * MS), calls=seq)


def begins(run: int, seq: int) -> bytes:
    """A graph of one task arrives, and the task is given to the worker."""
    t = at(seq)
    graph = (GRAPH, 0, t - 2, t - 1, 1, 1, "client", -1)
    return shipped(SCHEDULER, seq, graph, (ASSIGN, run, t, WORKER.name, -1, f"long-{run}"))


def ends(run: int, seq: int, began: int) -> list[bytes]:
    """The run ends, as worker and scheduler tell it."""
    t, start = at(seq), at(began) + MS
    return [
        shipped(WORKER, seq, (RUN, run, start, start, start, t - MS, 7, 0, WORKER.name)),
        shipped(SCHEDULER, seq, (FINISH, run, t, 0, 8, "int")),
    ]


def opened(folder: Path) -> tuple[stageprof.Recording, Window]:
    """The recording of the segments in a folder, and what it covers."""
    path = folder.parent / "out.stageprof"
    window = assemble(folder, path)
    return stageprof.open(path), window


def forget_first(folder: Path, number: int = 1) -> None:
    """As if the oldest segments had been overwritten."""
    for path in sorted(folder.glob("*.segment"))[:number]:
        path.unlink()


def roll(segments: Segments) -> None:
    """Have the next batch begin a segment."""
    segments._seal()
