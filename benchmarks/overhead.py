"""What recording costs: the same workloads with nothing, stageprof, and other tools.

Run ``python benchmarks/overhead.py [--clusters 3] [--rounds 3] [--write benchmarks/RESULTS.md]``;
with ``--keep FILE`` rounds are added to those of earlier runs, one workload at a time if so wished.
Within a round every tool runs once, in a new order, on the same warm cluster, between bare runs,
and the garbage collector runs before each. What is recorded costs more on one cluster than on
another that was started in the same way, so rounds are of several.
A figure is the median over rounds of a run's seconds divided by the mean of the two bare ones next
to it, with a bootstrap interval of 95 % (clusters are drawn, and rounds of those): of wall seconds,
in which the tool begins (what it does in the end, such as writing a report, is not in them), and of
CPU seconds of the client and all processes of the cluster, which other programs disturb less.
Besides, by stageprof's own clocks, which the machine's noise leaves alone: its part of the
processor time (threads, processes and hooks of its own, and what is done for each call around
functions of Dask's; not what its messages cost Dask), and microseconds a task by hook.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
import psutil
from dask.diagnostics import Profiler
from distributed import Client, LocalCluster, get_client, performance_report
from pyinstrument import Profiler as Pyinstrument

sys.path.insert(0, os.fspath(Path(__file__).parents[1]))

import stageprof
from benchmarks import ratios
from benchmarks.page import machine, write
from benchmarks.ratios import BARE, Rounds, Run
from benchmarks.workloads import make_frame, no_ops, rechunk, sample, short_array

#: What is added to a workload's name where one worker runs it: that, and client and scheduler, have
#: a processor each then, of two. With two workers there is none to spare.
ONE_WORKER = ", one worker"
#: At most so many times as long, recorded; with one worker as well.
TARGETS = {"rechunk": 1.01, "etl": 1.01, "no-op tasks": 1.02}
#: A further bare run in each round: what no figure here can be better than.
AGAIN = "again"


# -- tools --------------------------------------------------------------------------------------

#: (role, hook) -> calls, ns; the tasks of all recordings are under `TASKS`
Hooks = dict[tuple[str, str], list[float]]
TASKS = ("", "tasks")


@dataclass
class Own:
    """What a recording says that it cost, once it is over, in seconds of a processor."""

    seconds: float = 0.0


@contextlib.contextmanager
def recording(folder: Path, hooks: Hooks) -> Iterator[Own]:
    """stageprof, into a file."""
    own = Own()
    with stageprof.profile(folder / "run.stageprof") as prof:
        yield own
    own.seconds = float(prof.recording.coverage()["overhead_s"])
    hooks.setdefault(TASKS, [0, 0])[0] += len(prof.recording.tasks())
    for origin in prof.recording.store.origins:
        for name, (calls, ns) in origin.cost.items():
            total = hooks.setdefault((origin.place.role, name), [0, 0])
            total[0] += calls
            total[1] += ns


@contextlib.contextmanager
def instrumented() -> Iterator[None]:
    """Pyinstrument in the caller's thread."""
    profiler = Pyinstrument()
    profiler.start()
    yield
    profiler.stop()


@dataclass
class Bench:
    """One workload under several tools, on one cluster."""

    work: Callable[[], None]
    tools: dict[str, Callable[[], AbstractContextManager[Any]]]
    rounds: Rounds = field(default_factory=list)

    def round(self) -> None:
        """Run every tool once, in a random order, between bare runs."""
        names = [name for name in self.tools if name != BARE]
        random.shuffle(names)
        order = [BARE, *(each for name in names for each in (name, BARE))]
        self.rounds.append([self._run(name) for name in order])

    def _run(self, name: str) -> Run:
        settle()
        busy, started = cpu_s(), time.perf_counter()
        with self.tools[name]() as own:
            self.work()
            # What a tool does after the run (writing a report) is not the run's cost.
            run = Run(name, time.perf_counter() - started, cpu_s() - busy)
        return run._replace(own_s=own.seconds) if isinstance(own, Own) else run


def settle() -> None:
    """Collect garbage everywhere.

    A full collection is due every third run or so, for what the runs before have left, and takes
    as long as all that is measured here.
    """
    gc.collect()
    with contextlib.suppress(ValueError):  # there is no cluster
        get_client().run(gc.collect)


def cpu_s() -> float:
    """CPU seconds so far of this process and of those that it started."""
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return sum(t.user + t.system for t in times)


def on_cluster(folder: Path, hooks: Hooks) -> dict[str, Any]:
    """Tools for a distributed run."""
    return {
        BARE: contextlib.nullcontext,
        AGAIN: contextlib.nullcontext,
        "stageprof": lambda: recording(folder, hooks),
        "performance_report": lambda: performance_report(str(folder / "report.html")),
        "pyinstrument": instrumented,
    }


def on_threads(folder: Path, hooks: Hooks) -> dict[str, Any]:
    """Tools for a run on the threaded scheduler."""
    return {
        BARE: contextlib.nullcontext,
        AGAIN: contextlib.nullcontext,
        "stageprof": lambda: recording(folder, hooks),
        "dask.diagnostics.Profiler": Profiler,
        "pyinstrument": instrumented,
    }


@contextlib.contextmanager
def clustered(folder: Path, hooks: Hooks, workers: int = 2) -> Iterator[dict[str, Any]]:
    """The tools, with a cluster as the active one."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        yield on_cluster(folder, hooks)


@contextlib.contextmanager
def threaded(folder: Path, _: Hooks) -> Iterator[dict[str, Any]]:
    """The tools, with threads as the scheduler; hooks there are not those that are told of."""
    with dask.config.set(scheduler="threads", num_workers=2):
        yield on_threads(folder, {})


#: Workloads by name: what makes it, and where it runs.
WORKS: dict[str, tuple[Callable[[], Callable[[], None]], Any]] = {
    "rechunk": (rechunk, clustered),
    "etl": (lambda: sample("etl"), clustered),
    "no-op tasks": (lambda: no_ops, clustered),
    "short array": (lambda: short_array, clustered),
    "short dataframe": (make_frame, clustered),
    "short array, threads": (lambda: short_array, threaded),
    "short dataframe, threads": (make_frame, threaded),
    "no-op tasks, threads": (lambda: no_ops, threaded),
}
WORKS |= {
    name + ONE_WORKER: (WORKS[name][0], functools.partial(clustered, workers=1)) for name in TARGETS
}


def measured(
    name: str, clusters: int, rounds: int, folder: Path, tools: list[str], hooks: Hooks
) -> Iterator[Rounds]:
    """A workload under some tools, interleaved by round; the rounds of one cluster each time."""
    make, where = WORKS[name]
    work = make()  # before the workers start: they import from where we do
    for i in range(clusters):
        with where(folder, hooks) as known:
            given = {t: tool for t, tool in known.items() if not tools or t in (BARE, *tools)}
            bench = Bench(work, given)
            bench.work()  # warm: first-use imports are not what is compared
            for j in range(rounds):
                bench.round()
                said = f"cluster {i + 1}/{clusters}, round {j + 1}/{rounds}: {name}"
                print(said, file=sys.stderr, flush=True)
        yield bench.rounds


# -- what is kept between runs ------------------------------------------------------------------


def kept(path: Path | None) -> tuple[dict[str, list[Rounds]], Hooks]:
    """Rounds by workload and cluster, and the hooks' cost, of earlier runs."""
    if path is None or not path.exists():
        return {}, {}
    said = json.loads(path.read_text())
    works = {
        name: [[[Run(*run) for run in runs] for runs in rounds] for rounds in clusters]
        for name, clusters in said["clusters"].items()
    }
    return works, {(role, name): cost for role, name, cost in said["hooks"]}


def keep(path: Path, works: dict[str, list[Rounds]], hooks: Hooks) -> None:
    """Write them."""
    costs = [(role, name, cost) for (role, name), cost in hooks.items()]
    path.write_text(json.dumps({"clusters": works, "hooks": costs}))


# -- report -------------------------------------------------------------------------------------


def table(works: dict[str, list[Rounds]]) -> Iterator[str]:
    """The figures as markdown."""
    yield (
        "| workload | clusters | rounds | bare, s | tool | wall | 95 % | target | CPU | 95 % "
        "| own, % |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name in (name for name in WORKS if name in works):
        clusters = works[name]
        for tool in ratios.tools(clusters):
            target = TARGETS.get(name.removesuffix(ONE_WORKER), "") if tool == "stageprof" else ""
            cells = (
                name,
                len(clusters),
                ratios.count(clusters, tool),
                f"{ratios.bare_s(clusters):.2f}",
                tool,
                ratios.wall(clusters, tool),
                target,
                ratios.cpu(clusters, tool),
                ratios.own(clusters, tool),
            )
            yield f"| {' | '.join(map(str, cells))} |"


def costs(hooks: Hooks) -> Iterator[str]:
    """Microseconds a task that stageprof's hooks took by their own clock."""
    yield "| place | hook | calls a task | us a task |"
    yield "|---|---|---|---|"
    tasks = hooks.get(TASKS, [0])[0]
    for (role, name), (calls, ns) in sorted(hooks.items()):
        if (role, name) != TASKS and tasks:
            yield f"| {role} | {name} | {calls / tasks:.2f} | {ns / tasks / 1e3:.2f} |"


def main() -> None:
    """Run, print, and write if asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clusters", type=int, default=3, help="0: only what was kept")
    options.add_argument("--rounds", type=int, default=3, help="on each cluster")
    options.add_argument("--workloads", nargs="+", default=list(WORKS), choices=list(WORKS))
    options.add_argument("--tools", nargs="+", default=[], help="only these beside `nothing`")
    options.add_argument("--keep", type=Path, metavar="FILE", help="add to the rounds that it has")
    options.add_argument("--write", type=Path, help="put the tables between the markers there")
    given = options.parse_args()
    works, hooks = kept(given.keep)
    with tempfile.TemporaryDirectory() as folder:
        for name in given.workloads:
            asked = name, given.clusters, given.rounds, Path(folder), given.tools
            for rounds in measured(*asked, hooks):
                works.setdefault(name, []).append(rounds)
                if given.keep is not None:
                    keep(given.keep, works, hooks)
    text = "\n".join([machine(), "", *table(works), "", *costs(hooks)])
    print(text)
    if given.write is not None:
        write(given.write, "overhead", text)


if __name__ == "__main__":
    main()
