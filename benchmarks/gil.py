"""What watching the GIL costs, and how right it is, beside other ways of asking.

Run ``python benchmarks/gil.py [--rounds 5] [--write docs/gil.md]``. A thread holds the GIL in C for
a known part of the time, so that the truth is known; each way says what part it was. What a way
costs is the processor time of its own process or thread, in percent of one processor, and by how
much fewer rounds a loop in pure Python makes beside it. Ways are interleaved within a round.
gilknocker is compared where it is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.util
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

from benchmarks.page import machine, write
from stageprof_runtime.batch import Row
from stageprof_runtime.event import SAMPLE
from stageprof_runtime.gil.ticker import Ticker
from stageprof_runtime.gil.watcher import Watcher

#: Parts of the time for which the GIL is held, and for how long each way looks, s.
PARTS, SECONDS = (0.0, 0.2, 0.6), 6.0
_C = ctypes.PyDLL(None)


class Said(NamedTuple):
    """What a way said was held, and the seconds of a processor that it took."""

    part: float
    cpu_s: float


class Heard:
    """Stands where probes emit; keeps the contention that it is told."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def row(self, _: str, row: Row) -> None:
        """What a probe emits."""
        if row[0] == SAMPLE and row[2] == "gil.contention":
            self.values.append(row[3])

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None

    @property
    def mean(self) -> float:
        """Without the first, in which the way began."""
        return statistics.mean(self.values[1:]) if len(self.values) > 1 else float("nan")


Way = Callable[[], AbstractContextManager[list[Said]]]


@contextlib.contextmanager
def nothing() -> Iterator[list[Said]]:
    """For comparison."""
    yield []


@contextlib.contextmanager
def watched() -> Iterator[list[Said]]:
    """From a process beside this one."""
    said: list[Said] = []
    heard = Heard()
    watcher = Watcher(heard)
    watcher.start()
    yield said
    watcher.stop()
    said.append(Said(heard.mean, sum(w.beside_ns for w in watcher.watches) / 1e9))


@contextlib.contextmanager
def ticked() -> Iterator[list[Said]]:
    """From a thread that asks for it."""
    said: list[Said] = []
    heard = Heard()
    ticker = Ticker(heard, "any")
    before = _of_threads("stageprof-ticker")
    ticker.start()
    yield said
    cpu = _of_threads("stageprof-ticker") - before
    ticker.stop()
    said.append(Said(heard.mean, cpu))


def _of_threads(name: str) -> float:
    """Processor seconds of this process's threads of a name."""
    ids = [t.native_id for t in threading.enumerate() if t.name == name]
    total = 0.0
    for native in ids:
        fields = Path(f"/proc/self/task/{native}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / 100
    return total


@contextlib.contextmanager
def knocked(every_us: int, for_us: int, pause_us: int) -> Iterator[list[Said]]:
    """gilknocker: asks `every_us` for `for_us`, then sleeps `pause_us`."""
    from gilknocker import KnockKnock

    said: list[Said] = []
    knocker = KnockKnock(every_us, for_us, pause_us)
    before = time.process_time()
    knocker.start()
    yield said
    knocker.stop()
    said.append(Said(knocker.contention_metric, time.process_time() - before))


def ways() -> dict[str, Way]:
    """All ways that there are here."""
    found: dict[str, Way] = {"nothing": nothing, "watch": watched, "ticker": ticked}
    if importlib.util.find_spec("gilknocker"):
        found["gilknocker, Dask's setting"] = lambda: knocked(1_000, 10_000, 100_000)
        found["gilknocker, all the time"] = lambda: knocked(1_000, 10_000, 1)
    return found


def holding(part: float, over: threading.Event) -> None:
    """Hold the GIL in C for a part of each tenth of a second."""
    while not over.is_set():
        if part:
            _C.usleep(round(part * 1e5))
        time.sleep((1 - part) * 0.1)


def held(way: Way, part: float) -> tuple[float, float]:
    """What a way says is held of a known part, and its cost in processors."""
    over = threading.Event()
    thread = threading.Thread(target=holding, args=(part, over))
    with way() as said:
        thread.start()
        begun = time.perf_counter()
        over.wait(SECONDS)
        length = time.perf_counter() - begun
        over.set()
        thread.join()
    return (said[0].part, said[0].cpu_s / length) if said else (float("nan"), 0.0)


def slowed(way: Way) -> float:
    """Rounds a second that a loop in pure Python makes beside a way."""
    with way():
        rounds, until = 0, time.perf_counter() + SECONDS / 2
        begun = time.perf_counter()
        while time.perf_counter() < until:
            sum(range(1000))
            rounds += 1
        return rounds / (time.perf_counter() - begun)


def measure(rounds: int) -> Iterator[str]:
    """The table, as markdown."""
    found = ways()
    said: dict[tuple[str, float], list[tuple[float, float]]] = {}
    loops: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, way in found.items():
            loops[name].append(slowed(way))
            for part in PARTS if name != "nothing" else ():
                said.setdefault((name, part), []).append(held(way, part))
    yield "| way | " + " | ".join(f"says of {p:.0%}" for p in PARTS) + " | cost | loop slower by |"
    yield "|---|" + "---|" * (len(PARTS) + 2)
    for name in list(found)[1:]:
        rows = [said[name, part] for part in PARTS]
        told = [f"{min(x for x, _ in r):.1%} to {max(x for x, _ in r):.1%}" for r in rows]
        cost = max(statistics.median(c for _, c in r) for r in rows)
        ratio = statistics.median(loops["nothing"]) / statistics.median(loops[name]) - 1
        yield f"| {name} | {' | '.join(told)} | {cost:.2%} of a processor | {ratio:+.1%} |"


def main() -> None:
    """Run, print, and write if asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--write", type=Path, help="put the table between the markers there")
    given = options.parse_args()
    text = "\n".join([f"{given.rounds} rounds. {machine()}", "", *measure(given.rounds)])
    print(text)
    if given.write is not None:
        write(given.write, "gil", text)


if __name__ == "__main__":
    main()
