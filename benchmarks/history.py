"""A CI history: comparing many recordings in one process, and on a cluster.

Run ``python benchmarks/history.py [--recordings 1000] [--tasks 1000] [--workers 2]``, with
``--write docs/scaling.md`` to write the table there. Half of the recordings are the baseline, each
made with a seed of its own. Both ways must say the same.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
from distributed import Client, LocalCluster

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

import stageprof
from benchmarks.generate import generate
from benchmarks.page import machine, write


def made(folder: Path, recordings: int, tasks: int) -> tuple[Path, Path]:
    """Folders of both sides."""
    sides = folder / "base", folder / "head"
    for number in range(recordings):
        side = sides[number % 2]
        side.mkdir(exist_ok=True)
        generate(side / f"{number:05}.stageprof", tasks=tasks, workers=2, seed=number)
    return sides


def compared(sides: tuple[Path, Path]) -> tuple[float, str]:
    """Seconds, and what the comparison says."""
    start = time.perf_counter()
    found = stageprof.compare(*map(str, sides), force=True)
    return time.perf_counter() - start, str(found)


def main() -> None:
    """Compare both ways, and print or write a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=1000, help="of each recording")
    parser.add_argument("--workers", type=int, default=2, help="of the cluster, of one thread each")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    rows = ["| where | seconds | MB of this process |", "|---|--:|--:|"]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        sides = made(Path(folder), given.recordings, given.tasks)
        said: list[Any] = []
        for where in ("one process", f"a cluster of {given.workers} workers"):
            if said:
                size = {"n_workers": given.workers, "threads_per_worker": 1}
                cluster = stack.enter_context(LocalCluster(**size, dashboard_address=":0"))
                stack.enter_context(Client(cluster))
            seconds, text = compared(sides)
            said.append(text)
            rows.append(
                f"| {where} | {seconds:.0f} | {psutil.Process().memory_info().rss / 1e6:.0f} |"
            )
    same = "the same" if said[0] == said[1] else "NOT the same"
    kind = f"{given.recordings:,} recordings of {given.tasks:,} tasks; both said {same}."
    text = "\n".join([*rows, "", kind, "", machine()])
    print(text)
    if given.write:
        write(given.write, "history", text)


if __name__ == "__main__":
    main()
