"""Overhead at size: 200,000 tasks that do nothing, with and without stageprof, in turn.

Run ``python benchmarks/size.py --keep size.json [--rounds 3]`` as often as there is time for: each
run adds its rounds to those in the file, and prints what all of them show. ``--for 240`` begins no
round that would not end within so many seconds. In a round the same warm cluster computes the same
graph once bare and once recorded, the first of them by lot; a figure is the median over rounds of
recorded / bare, with a bootstrap interval of 95 %.

``--kinds bare recorded unwatched`` compares a recording without the watch of the GIL too, which
runs in processes of its own beside the client, the scheduler and each worker; ``--kinds recorded``
makes recorded runs only, to see what they leave. ``--kinds bare again recorded`` makes a second
bare run in each round: what it differs by from the first, no figure can be better than.

``--scheduler local`` (the default) is a `LocalCluster`: client, collector and scheduler share a
process and its GIL, which is the worst case. With ``--scheduler apart`` each is a process of its
own, so that what the scheduler's process takes of memory is the scheduler's: at most 100 bytes a
task beyond a bare run are allowed, and no growth over ten recorded runs. With ``--address`` the
cluster is one that is running, so that several runs of this program use the same.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import psutil
from dask._task_spec import List, Task
from dask.delayed import Delayed
from distributed import Client, LocalCluster
from distributed.deploy.subprocess import SubprocessCluster

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

import stageprof
from benchmarks.overhead import cpu_s
from benchmarks.page import machine
from benchmarks.workloads import nothing

WALL_TARGET: Final = 1.02
BYTES_TARGET: Final = 100
#: What a round may compare: nothing, once more nothing, stageprof, and that without its watch of
#: the GIL.
KINDS: Final = ("bare", "again", "recorded", "unwatched")
RECORDED: Final = KINDS[2:]
#: Tasks that one waits for: a result of 200,000 parts would measure the client.
FAN: Final = 1_000
#: Threads of each of two workers. With one, a task takes 1.7 ms, most of them waiting: Dask gathers
#: messages for 2 ms, and gives a thread its next task when it hears that one has ended.
THREADS: Final = 16
#: Tasks until Dask's log of the latest 100,000 transitions is full.
LOGGED: Final = 20_000
#: A row of the scheduler's: a tuple of six, and the three numbers in it that nobody else has.
ROW_BYTES: Final = 200
#: How often the scheduler's memory is looked at, seconds.
LOOK_S: Final = 0.05

Run = dict[str, Any]


def graph(tasks: int) -> dict[Any, Task]:
    """Tasks that do nothing, one that waits for each thousand, and one that waits for those."""
    leaves = [Task(("x", i), nothing, i) for i in range(tasks)]
    knots = [
        Task(("knot", i), max, List(*(leaf.ref() for leaf in leaves[i : i + FAN])))
        for i in range(0, tasks, FAN)
    ]
    end = Task(("end",), max, List(*(knot.ref() for knot in knots)))
    return {task.key: task for task in (*leaves, *knots, end)}


class Most:
    """The most of something that was seen, by a thread that looks all the time."""

    def __init__(self, number: Callable[[], int]) -> None:
        self.seen = 0
        self._number = number
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Look no more; the most."""
        self._over.set()
        self._thread.join()
        return self.seen

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            self.seen = max(self.seen, self._number())


def begin_to_look(dask_scheduler: Any) -> None:
    """In the scheduler's process: see how many rows wait in its rings."""
    from stageprof_runtime import process

    def waiting() -> int:
        return sum(len(ring) for ring in process._rings.get("scheduler", ()))

    dask_scheduler.rows_seen = Most(waiting)


def most_rows(dask_scheduler: Any) -> int:
    """There: the most."""
    return int(dask_scheduler.rows_seen.stop())


def once(client: Client, pid: int, tasks: int, profile: Callable[[], Any]) -> Run:
    """One run: seconds to its result, seconds until all is over, memory of the scheduler."""
    made = Delayed(("end",), graph(tasks))
    gc.collect()
    before, busy = psutil.Process(pid).memory_info().rss, cpu_s()
    memory = Most(lambda: int(psutil.Process(pid).memory_info().rss))
    client.run_on_scheduler(begin_to_look)
    begun = time.perf_counter()
    with profile():
        assert made.compute(optimize_graph=False) == tasks - 1
        done = time.perf_counter()
    over = time.perf_counter()
    return {
        "wall_s": done - begun,
        "whole_s": over - begun,
        "cpu_s": cpu_s() - busy,
        "rss_before": before,
        "rss_peak": memory.stop(),
        "rss_after": psutil.Process(pid).memory_info().rss,
        "ring_rows": client.run_on_scheduler(most_rows),
    }


def rounds(client: Client, given: argparse.Namespace, folder: Path) -> Iterator[Run]:
    """Rounds until there are enough, or no time is left for another."""
    pid = client.run_on_scheduler(os.getpid)
    file = folder / "size.stageprof"
    kinds: dict[str, Callable[[], Any]] = {
        "bare": contextlib.nullcontext,
        "again": contextlib.nullcontext,
        "recorded": lambda: stageprof.profile(file),
        "unwatched": lambda: stageprof.profile(file, gil=False),
    }
    begun = longest = time.perf_counter()
    once(client, pid, given.tasks // 20, kinds["recorded"])  # warm: first imports are not compared
    longest = 0.0
    for _ in range(given.rounds):
        started = time.perf_counter()
        if started - begun + 1.1 * longest > given.seconds:
            return
        run: Run = {"tasks": given.tasks, "scheduler": given.scheduler, "cluster": pid}
        for kind in random.sample(given.kinds, k=len(given.kinds)):
            run[kind] = once(client, pid, given.tasks, kinds[kind])
            run[kind] |= _seen(file) if kind in RECORDED else {}
        longest = max(longest, time.perf_counter() - started)
        yield run


def _seen(file: Path) -> Run:
    recording = stageprof.open(file)
    store = recording.store
    drops = {reason: n for origin in store.origins for reason, n in origin.drops.items()}
    return {
        "file_bytes": file.stat().st_size,
        "assigned": store.rows("assign"),
        "ran": store.rows("run"),
        "dropped": drops,
        "hooks_us": _hooks(recording),
    }


def _hooks(recording: stageprof.Recording) -> dict[str, float]:
    """Microseconds a task by the hooks' own clock, by place."""
    found: dict[str, float] = {}
    for origin in recording.store.origins:
        for name, (_, ns) in origin.cost.items():
            which = f"{origin.place.role}: {name}"
            found[which] = found.get(which, 0.0) + ns / 1e3 / recording.store.rows("assign")
    return {name: round(us, 3) for name, us in sorted(found.items())}


# -- what all rounds show -------------------------------------------------------------------------


def interval(values: Sequence[float], draws: int = 4000) -> tuple[float, float, float]:
    """The median, and the bootstrap interval of 95 % around it."""
    drawing = random.Random(0)
    drawn = sorted(statistics.median(drawing.choices(values, k=len(values))) for _ in range(draws))
    return statistics.median(values), drawn[draws // 40], drawn[-draws // 40]


def report(kept: Sequence[Run]) -> Iterator[str]:
    """The figures as markdown, for each size, kind of scheduler and way to record."""
    yield "| scheduler | tasks | what | rounds | figure | median | 95 % interval | target |"
    yield "|---|---|---|---|---|---|---|---|"
    for scheduler, tasks in sorted({(run["scheduler"], run["tasks"]) for run in kept}):
        mine = [r for r in kept if (r["scheduler"], r["tasks"]) == (scheduler, tasks)]
        for kind in KINDS[1:]:
            for figure, values, target in _figures([r for r in mine if kind in r], kind):
                if values:
                    middle, low, high = interval(values)
                    row = (scheduler, f"{tasks:,}", kind, str(len(values)), figure)
                    numbers = f"{middle:.4g} | {low:.4g} to {high:.4g} | {target}"
                    yield f"| {' | '.join(row)} | {numbers} |"


def _figures(mine: Sequence[Run], kind: str) -> Iterator[tuple[str, list[float], str]]:
    both = [run for run in mine if "bare" in run]

    def ratios(field: str) -> list[float]:
        return [run[kind][field] / run["bare"][field] for run in both]

    yield "bare, s", [run["bare"]["wall_s"] for run in both], ""
    yield "wall, ratio", ratios("wall_s"), str(WALL_TARGET)
    yield "processor time, ratio", ratios("cpu_s"), ""
    more = [(r[kind]["rss_peak"] - r["bare"]["rss_peak"]) / r["tasks"] for r in both]
    yield "memory of the scheduler's process, bytes a task more", more, str(BYTES_TARGET)
    if kind not in RECORDED:
        return
    yield "until the file is closed, ratio", ratios("whole_s"), ""
    rows = [ROW_BYTES * run[kind]["ring_rows"] / run["tasks"] for run in mine]
    yield "of that in the ring at most, bytes a task", rows if any(rows) else [], ""
    yield "file, bytes a task", [run[kind]["file_bytes"] / run["tasks"] for run in mine], ""
    yield "growth, bytes a task and recorded run", list(_growth(mine, kind)), "0"


def _growth(mine: Sequence[Run], kind: str) -> Iterator[float]:
    """What a recorded run of a cluster left of memory, once Dask's own logs are full.

    From each run of the first half to the one as far into the second: an allocator keeps more of
    one run and less of the next, so that neighbours differ by more than they grow.
    """
    for cluster in dict.fromkeys(run["cluster"] for run in mine):
        runs = [run for run in mine if run["cluster"] == cluster]
        full = max(2, LOGGED // runs[0]["tasks"])
        after = [run[kind]["rss_after"] for run in runs[full:]]
        half = len(after) // 2
        apart = (len(after) - half) * runs[0]["tasks"]
        yield from (
            (b - a) / apart for a, b in zip(after[:half], after[len(after) - half :], strict=True)
        )


def started(given: argparse.Namespace) -> contextlib.AbstractContextManager[Any]:
    """The cluster to measure on, or the address of one that runs."""
    if given.address:
        return contextlib.nullcontext(given.address)
    if given.scheduler == "apart":
        return SubprocessCluster(n_workers=2, threads_per_worker=THREADS)
    return LocalCluster(n_workers=2, threads_per_worker=THREADS, dashboard_address=":0")


def main() -> None:
    """Run, keep, print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tasks", type=int, default=200_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--for", dest="seconds", type=float, default=1e9, metavar="SECONDS")
    options.add_argument("--scheduler", choices=("local", "apart"), default="local")
    options.add_argument("--address", help="of a scheduler that runs, with `apart`")
    options.add_argument("--kinds", nargs="+", default=["bare", "recorded"], choices=KINDS)
    options.add_argument("--keep", type=Path, metavar="FILE", help="add the rounds to those there")
    given = options.parse_args()
    kept: list[Run] = []
    if given.keep is not None and given.keep.exists():
        kept = json.loads(given.keep.read_text())
    with (
        tempfile.TemporaryDirectory() as folder,
        started(given) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        for run in rounds(client, given, Path(folder)):
            kept.append(run)
            if given.keep is not None:
                given.keep.write_text(json.dumps(kept))
            print(json.dumps(run), file=sys.stderr, flush=True)
    print("\n".join([machine(), "", *report(kept)]))


if __name__ == "__main__":
    main()
