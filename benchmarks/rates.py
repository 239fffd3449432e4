"""What each part of stageprof takes of a processor for a task, a batch, a worker: one core each.

Run ``python benchmarks/rates.py``, which takes two seconds. ``--cluster`` starts a scheduler too,
and measures what a round trip to its clock and a batch passed on take of it. docs/scaling.md says
what follows from the figures.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time_ns
from types import SimpleNamespace
from typing import Any, Final

import psutil

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

from benchmarks.page import machine
from stageprof_collectors.storage.file import Writer
from stageprof_collectors.storage.merge import merge
from stageprof_collectors.storage.store import Store
from stageprof_runtime import process
from stageprof_runtime.batch import Row, pack
from stageprof_runtime.event import ASSIGN, FINISH, RUN, Place
from stageprof_runtime.patch import observe
from stageprof_runtime.probes import scheduling
from stageprof_runtime.ring import Ring
from stageprof_runtime.scheduler_plugin import SchedulerProbe

TASKS: Final = 40_000
#: Tasks of one batch: at 150 us a task about what the scheduler ships at once.
BATCH: Final = 500
CALLS: Final = 2_000
_ADDRESS: Final = "tcp://10.0.0.7:41234"

Figure = tuple[str, float, str]


def us(function: Callable[[], object], times: int) -> float:
    """Microseconds of processor time that each of so many things takes in a function."""
    begun = process_time_ns()
    function()
    return (process_time_ns() - begun) / times / 1e3


def loop(function: Callable[..., object], *args: Any, **kwargs: Any) -> float:
    """The same of a call."""
    return us(lambda: [function(*args, **kwargs) for _ in range(TASKS)] and None, TASKS)


# -- hooks ----------------------------------------------------------------------------------------


def hooks() -> Iterator[Figure]:
    """What a task takes in the hooks of a scheduler."""
    ring = Ring(capacity=1 << 40)
    probe: Any = SchedulerProbe("s", "client", b"")
    worker = SimpleNamespace(address=_ADDRESS)
    task = SimpleNamespace(processing_on=worker, run_id=7, dependencies=(), who_wants=None)
    probe._scheduler = SimpleNamespace(tasks={"k": task})
    probe._ring, probe._relayed = ring, {_ADDRESS: 1}
    probe._counts, probe._cause = [0, 0, 0], 3
    ended = {"worker": _ADDRESS, "nbytes": 28, "typename": "int", "startstops": ()}
    call = probe.transition
    yield "transition that is not looked at", loop(call, "k", "released", "waiting", a=1), "us"
    yield "transition: a task is given away", loop(call, "k", "waiting", "processing", a=1), "us"
    yield "transition: a task has ended", loop(call, "k", "processing", "memory", **ended), "us"
    yield from wrappers(ring)


def wrappers(ring: Ring) -> Iterator[Figure]:
    """What a task takes in the functions of the scheduler that are wrapped."""

    class Bare:
        def transitions(self, changes: object) -> None:
            """Do nothing."""

        def send(self, worker: str, task: object) -> None:
            """Do nothing."""

    leave = process.join("scheduler", ring, [], "rates")
    task = SimpleNamespace(run_id=7, key="k")
    before = loop(Bare().transitions, {}) + loop(Bare().send, "w", task)
    undos = [
        observe(Bare, "transitions", functools.partial(scheduling._transitions, process.EMIT)),
        observe(Bare, "send", functools.partial(scheduling._sent, process.EMIT)),
    ]
    after = loop(Bare().transitions, {}) + loop(Bare().send, "w", task)
    yield "wrappers of transitions and of sending", after - before, "us"
    for undo in undos:
        undo()
    leave()


# -- what follows them ----------------------------------------------------------------------------


def rows() -> list[Row]:
    """What a scheduler and a worker tell of tasks."""
    draw, t, made = random.Random(0), 10**14, list[Row]()
    for i in range(TASKS):
        t += 150_000 + draw.randrange(1_000)
        made.append((ASSIGN, i, t, _ADDRESS, i - 1, ("x-1a2b", i)))
        made.append((FINISH, i, t + 90_000 + draw.randrange(9_999), 0, 28, "int"))
        stamps = sorted(t + draw.randrange(80_000) for _ in range(4))
        made.append((RUN, i, *stamps, 1, draw.randrange(50_000), ""))
    return made


def path(folder: Path) -> Iterator[Figure]:
    """From rows to a file, and from the file to columns."""
    made, place = rows(), Place("scheduler", "host", 1, "tcp://10.0.0.1:8786", 1)
    batches: list[bytes] = []

    def shipped() -> None:
        for seq, first in enumerate(range(0, len(made), 3 * BATCH)):
            batches.append(pack(place, seq, 1, made[first : first + 3 * BATCH]))

    yield "a place packs them", us(shipped, TASKS), "us"
    lots = [batches[i : i + 5] for i in range(0, len(batches), 5)]
    merged: list[bytes] = []
    yield (
        "the collector joins batches",
        us(lambda: merged.extend(b for lot in lots for b in merge(lot)), TASKS),
        "us",
    )
    with Writer(folder / "rates.stageprof", {}) as writer:
        yield "and writes them", us(lambda: [writer.write(b) for b in merged] and None, TASKS), "us"
    size = (folder / "rates.stageprof").stat().st_size
    yield (
        "and the reader opens the file",
        us(lambda: Store.open(folder / "rates.stageprof").table("run"), TASKS),
        "us",
    )
    yield "bytes in the file, regular times", size / TASKS, "B"
    yield "bytes on the way", sum(map(len, batches)) / TASKS, "B"


# -- a scheduler ----------------------------------------------------------------------------------


def served() -> Iterator[Figure]:
    """What the scheduler's process takes for a round trip, and for a batch that it passes on."""
    from distributed import Client
    from distributed.deploy.subprocess import SubprocessCluster

    with (
        SubprocessCluster(n_workers=1, threads_per_worker=1) as cluster,
        Client(cluster) as client,
    ):
        scheduler = psutil.Process(client.run_on_scheduler(os.getpid))
        for name, data in (
            ("the scheduler answers a round trip", 0),
            ("the scheduler takes 20 kB and sends them on", b"x" * 20_000),
        ):
            yield name, client.sync(_asked, client, scheduler, data), "us"


async def _asked(client: Any, scheduler: psutil.Process, data: object) -> float:
    await client.scheduler.echo(data=data)
    begun = sum(scheduler.cpu_times()[:2])
    for _ in range(CALLS):
        await client.scheduler.echo(data=data)
    return (sum(scheduler.cpu_times()[:2]) - begun) / CALLS * 1e6


def main() -> None:
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cluster", action="store_true", help="start a scheduler as well")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [*hooks(), *path(Path(folder))]
    if given.cluster:
        found += served()
    print(f"{machine()}\n\n| what | takes, a task or each |\n|---|---|")
    for name, figure, unit in found:
        print(f"| {name} | {figure:.3g} {unit} |")


if __name__ == "__main__":
    main()
