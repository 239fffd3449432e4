"""Whose processor time recording takes: every thread of client, scheduler and workers.

Run ``python benchmarks/threads.py [--workload etl] [--rounds 6]``; Linux only. The same
computation runs bare and recorded in turn on one warm cluster of `overhead.py`. Each process reads
the clock of each of its threads before and after, as the kernel keeps it in nanoseconds. What a
process used beside the threads that are there at both ends was used by threads that came and went:
stageprof's own, and the watch of the GIL, which is a process.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

from distributed import Client, get_client

import stageprof
from benchmarks.overhead import WORKS, settle
from benchmarks.page import machine

#: What is in the names of threads that come by number, or with an address.
_NUMBERS: Final = re.compile(r"[-_ (]*(\d|tcp:|0x).*")
GONE, CHILDREN, WALL = "threads that came and went", "processes that came and went", "wall"
#: (process, thread) -> ns
Spent = dict[tuple[str, str], int]


def spent() -> dict[str, int]:
    """Processor time of this process, ns: by thread that is there, of all, and of its children."""
    names = {t.native_id: _NUMBERS.sub("", t.name) for t in threading.enumerate()}
    found: dict[str, int] = {}
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            ns = int((task / "schedstat").read_text().split()[0])
            name = names.get(int(task.name), "others")
            found[name] = found.get(name, 0) + ns
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    found[CHILDREN] = int((children.ru_utime + children.ru_stime) * 1e9)
    found[GONE] = time.process_time_ns() - sum(found.values()) + found[CHILDREN]
    return found


def everywhere(client: Client) -> Spent:
    """The same of this process, which is the scheduler's as well, and of all workers together."""
    here = {("client and scheduler", name): ns for name, ns in spent().items()}
    there: Spent = defaultdict(int)
    for found in client.run(spent).values():
        for name, ns in found.items():
            there["workers", name] += ns
    return here | there


def rounds(workload: str, n: int, folder: Path) -> Iterator[tuple[Spent, Spent]]:
    """What a bare run took, and a recorded one, as often as asked."""
    make, where = WORKS[workload]
    work = make()  # before the workers start: they import from where we do
    with where(folder, {}):
        client = get_client()

        def run(*, recorded: bool) -> Spent:
            settle()
            before, begun = everywhere(client), time.perf_counter_ns()
            with stageprof.profile(folder / "run") if recorded else contextlib.nullcontext():
                work()
            wall = time.perf_counter_ns() - begun
            after = everywhere(client)
            return {k: ns - before.get(k, 0) for k, ns in after.items()} | {("", WALL): wall}

        run(recorded=True)
        for i in range(n):
            order = (False, True) if i % 2 else (True, False)
            pair = {recorded: run(recorded=recorded) for recorded in order}
            print(f"round {i + 1}/{n}", file=sys.stderr, flush=True)
            yield pair[False], pair[True]


def table(pairs: list[tuple[Spent, Spent]]) -> Iterator[str]:
    """Medians over the rounds as markdown, milliseconds."""
    yield "| process | thread | bare, ms | recorded more, ms | of all bare |"
    yield "|---|---|---|---|---|"
    keys = sorted({key for pair in pairs for run in pair for key in run})
    medians = {key: _medians(pairs, key) for key in keys}
    total = sum(bare for key, (bare, _) in medians.items() if key[1] != WALL)
    for key, (bare, more) in medians.items():
        share = more / (bare if key[1] == WALL else total)
        if max(bare, abs(more)) >= 1:
            yield f"| {' | '.join(key)} | {bare:.0f} | {more:+.0f} | {share:+.1%} |"


def _medians(pairs: list[tuple[Spent, Spent]], key: tuple[str, str]) -> tuple[float, float]:
    bare = statistics.median(b.get(key, 0) for b, _ in pairs)
    more = statistics.median(r.get(key, 0) - b.get(key, 0) for b, r in pairs)
    return bare / 1e6, more / 1e6


def main() -> None:
    """Run, and print."""
    options = argparse.ArgumentParser(description=__doc__)
    clustered = [name for name in WORKS if "threads" not in name]
    options.add_argument("--workload", default="etl", choices=clustered)
    options.add_argument("--rounds", type=int, default=6)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(rounds(given.workload, given.rounds, Path(folder)))
    print("\n".join([machine(), "", *table(pairs)]))


if __name__ == "__main__":
    main()
