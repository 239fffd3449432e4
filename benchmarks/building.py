"""What recording adds to a loop of `delayed` calls, and to reading what a process uses beside it.

Run ``python benchmarks/building.py [--rounds 9]``; it takes a minute. Each round makes the same
loop bare, recorded, and recorded without some parts, in a new order, without garbage collections;
the watch of the GIL, a process of its own, is off. A figure is the median over rounds, in
microseconds of a call: of the thread that calls, and of the whole process. Then a thread reads
what the process uses, by Dask's monitor and by ours, beside such a loop: milliseconds of its own
processor time and until it has the answer, the two in turn.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from dask import delayed
from distributed.system_monitor import SystemMonitor

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

import stageprof
from benchmarks.page import machine
from stageprof_runtime import sampler, session
from stageprof_runtime.usage import Usage

CALLS: Final = 40_000
READS: Final = 40
BARE: Final = "bare"
#: What is left out of a recording: probes by their module, or the thread that looks.
KINDS: Final[dict[str, frozenset[str]]] = {
    BARE: frozenset(),
    "recorded": frozenset(),
    "without lines of layers": frozenset({"layers"}),
    "without embedded objects": frozenset({"objects"}),
    "without the sampler": frozenset({"sampler"}),
    "without all three": frozenset({"layers", "objects", "sampler"}),
}


@delayed  # type: ignore[untyped-decorator]
def inc(x: int) -> int:
    """What is called."""
    return x + 1


def build(calls: int = CALLS) -> list[object]:
    """The loop."""
    return [inc(i) for i in range(calls)]


@contextlib.contextmanager
def recorded(without: frozenset[str], folder: Path) -> Iterator[None]:
    """A recording without some of its parts."""
    probes, period = list(session.PROBES), sampler.PERIOD_S
    session.PROBES[:] = [p for p in probes if p.__module__.rpartition(".")[2] not in without]
    if "sampler" in without:
        sampler.PERIOD_S = 1_000.0
    try:
        with stageprof.profile(folder / "run.stageprof", gil=False):
            yield
    finally:
        session.PROBES[:], sampler.PERIOD_S = probes, period


def run(kind: str, folder: Path) -> tuple[float, float]:
    """Microseconds a call, of the thread and of the process."""
    with contextlib.nullcontext() if kind == BARE else recorded(KINDS[kind], folder):
        thread, process = time.thread_time(), time.process_time()
        made = build()
        found = (time.thread_time() - thread, time.process_time() - process)
    del made
    gc.collect()
    return found[0] / CALLS * 1e6, found[1] / CALLS * 1e6


def reading(updates: dict[str, Callable[[], object]]) -> dict[str, list[tuple[float, float]]]:
    """Seconds of a processor, and until it was done, of readings in turn beside the loop."""
    over = threading.Event()
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in updates}

    def read() -> None:
        for _ in range(READS):
            for name, update in updates.items():
                used, begun = time.thread_time(), time.perf_counter()
                update()
                taken[name].append((time.thread_time() - used, time.perf_counter() - begun))
                time.sleep(0.05)
        over.set()

    thread = threading.Thread(target=read)
    thread.start()
    while not over.is_set():
        build(1_000)
    thread.join()
    return taken


def quartiles(seconds: tuple[float, ...]) -> str:
    """The median in milliseconds, and the quartiles."""
    low, middle, high = (x * 1e3 for x in statistics.quantiles(seconds, n=4))
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"


def main() -> None:
    """Run, and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=9)
    given = options.parse_args()
    taken: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    gc.disable()
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            run(kind, Path(folder))  # warm
        for _ in range(given.rounds):
            for kind in random.sample(list(KINDS), len(KINDS)):
                taken[kind].append(run(kind, Path(folder)))
    print(machine(), "", "| | us a call, its thread | the process |", "|---|---|---|", sep="\n")
    for kind, runs in taken.items():
        thread, process = (statistics.median(column) for column in zip(*runs, strict=True))
        print(f"| {kind} | {thread:.1f} | {process:.1f} |")
    print(
        "", "| reading beside it | ms of a processor | ms until done |", "|---|---|---|", sep="\n"
    )
    monitor = SystemMonitor(maxlen=2, monitor_gil_contention=False)
    usage = Usage()
    for name, runs in reading({"Dask's monitor": monitor.update, "ours": usage.update}).items():
        cells = (quartiles(column) for column in zip(*runs, strict=True))
        print(f"| {name} | {' | '.join(cells)} |")
    usage.close()


if __name__ == "__main__":
    main()
