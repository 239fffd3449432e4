"""What looking at a thread costs it: pyinstrument in the thread, and our looks from outside.

Run ``python benchmarks/profilers.py [--rounds 20]``. In each round every observer gets its turn, in
a new order, each between two bare runs of the same work. A figure is the median over rounds, with
the quartiles: of the processor seconds of the thread that is looked at, divided by those of the
bare runs around it; and for our own thread what a look costs, and what that is of a second at its
period.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from pyinstrument import Profiler

from stageprof_runtime import sampler
from stageprof_runtime.ring import Ring
from stageprof_runtime.sampler import Sampler

Work = Callable[[], object]


class Ran(NamedTuple):
    """Processor seconds of the work's thread, those of ours, and looks."""

    seconds: float
    own: float
    looks: int


def nothing(x: int) -> int:
    """A task."""
    return x


def delayed_calls(n: int = 5_000) -> None:
    """A loop of `delayed` calls."""
    made = [dask.delayed(nothing)(i) for i in range(n)]
    assert len(made) == n


def expressions(frame: pd.DataFrame, n: int = 6) -> None:
    """A dataframe expression, built and optimized."""
    for _ in range(n):
        ddf = dd.from_pandas(frame, npartitions=20)
        out = ddf.assign(c=ddf.a + ddf.b, d=ddf.a * 2)
        out = out[out.c > 0].merge(ddf[["a", "b"]], on="a").groupby("a").agg({"d": ["mean", "sum"]})
        out.optimize()


def bare(work: Work, _period: float) -> Ran:
    """Nobody looks."""
    return Ran(used(work), 0.0, 0)


def inside(work: Work, period: float) -> Ran:
    """Pyinstrument in the thread."""
    profiler = Profiler(interval=period)
    profiler.start()
    seconds = used(work)
    profiler.stop()
    return Ran(seconds, 0.0, 0)


def outside(work: Work, period: float) -> Ran:
    """Our looks, with their stacks."""
    sampler.PERIOD_S = period
    looking = Sampler.here(Ring())
    seconds = used(work)
    clock = time.pthread_getcpuclockid(looking._worker.ident or 0)
    own = time.clock_gettime(clock)
    looking.stop()
    return Ran(seconds, own, looking.looks)


def waking(work: Work, period: float) -> Ran:
    """A thread that wakes as often, and looks at nothing: what no observer can save."""
    over, woken = threading.Event(), 0

    def wake() -> None:
        nonlocal woken
        while not over.wait(period):
            woken += 1

    thread = threading.Thread(target=wake)
    thread.start()
    seconds = used(work)
    own = time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))
    over.set()
    thread.join()
    return Ran(seconds, own, woken)


def used(work: Work) -> float:
    """Processor seconds of this thread for the work."""
    before = time.thread_time()
    work()
    return time.thread_time() - before


OBSERVERS: dict[str, tuple[Callable[[Work, float], Ran], float]] = {
    "nobody": (bare, 0.0),
    "pyinstrument, 10 ms": (inside, 0.01),
    "pyinstrument, 1 ms": (inside, 0.001),
    "wakes only, 20 ms": (waking, 0.02),
    "stageprof, 20 ms": (outside, 0.02),
    "stageprof, 10 ms": (outside, 0.01),
    "stageprof, 5 ms": (outside, 0.005),
    "wakes only, 1 ms": (waking, 0.001),
    "stageprof, 1 ms": (outside, 0.001),
}


def figures(work: Work, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """For each observer its ratios, and what a look cost, in microseconds."""
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in OBSERVERS}
    for _ in range(rounds):
        for name in random.sample(list(OBSERVERS), len(OBSERVERS)):
            observer, period = OBSERVERS[name]
            runs = []
            for watch, every in ((bare, 0.0), (observer, period), (bare, 0.0)):
                gc.collect()
                runs.append(watch(work, every))
            before, mine, after = runs
            found[name][0].append(2 * mine.seconds / (before.seconds + after.seconds))
            found[name][1].append(1e6 * mine.own / max(mine.looks, 1))
    return found


def line(name: str, ratios: list[float], looks: list[float]) -> str:
    """One row of the table."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    each, period = statistics.median(looks), OBSERVERS[name][1]
    own = f"{each:.0f} µs | {each / period / 1e4:.1f} %" if each else "|"
    return f"| {name} | {middle:.3f} ({low:.3f}-{high:.3f}) | {own} |"


def main() -> None:
    """Print a table for each workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.integers(0, 50, 2000), "b": rng.random(2000)})
    works: dict[str, Work] = {
        "a loop of delayed calls": delayed_calls,
        "a dataframe expression": lambda: expressions(frame),
    }
    for title, work in works.items():
        work()
        print(f"\n| {title} | the thread | a look | of a second |\n|---|---|---|---|")
        for name, (ratios, looks) in figures(work, rounds).items():
            print(line(name, ratios, looks))


if __name__ == "__main__":
    main()
