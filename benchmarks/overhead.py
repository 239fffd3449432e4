"""What recording costs: the same workloads with nothing, stageprof, and other tools.

Run ``python benchmarks/overhead.py [--rounds 9] [--write benchmarks/RESULTS.md]``. Within a round
every tool runs once in a new order, on the same warm cluster; a figure is the median over rounds
divided by that of the bare runs, with a bootstrap interval of 95 %: of wall seconds, and of CPU
seconds of the client and all processes of the cluster, which other programs disturb less. Besides:
microseconds a task in stageprof's own hooks, by the hooks' own clock.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
from dask._task_spec import List, Task
from dask.delayed import Delayed
from dask.diagnostics import Profiler
from distributed import Client, LocalCluster, performance_report
from pyinstrument import Profiler as Pyinstrument

import stageprof

TARGETS = {"array": 1.01, "dataframe": 1.01, "no-op tasks": 1.02}


# -- workloads ----------------------------------------------------------------------------------


def array() -> None:
    """An array reduction with a rechunk: a few hundred tasks of some ms."""
    x = da.random.default_rng(1).random((12000, 12000), chunks=(600, 12000))
    y = x.rechunk((12000, 600))
    ((y - y.mean(axis=0)) ** 2).sum().compute()


def make_frame(rows: int = 8_000_000) -> Callable[[], None]:
    """A groupby and a merge of a DataFrame in memory."""
    rng = np.random.default_rng(2)
    pdf = pd.DataFrame({"k": rng.integers(0, 1000, rows), "v": rng.random(rows)})
    small = pd.DataFrame({"k": np.arange(1000), "w": rng.random(1000)})

    def dataframe() -> None:
        ddf = dd.from_pandas(pdf, npartitions=48)
        merged = ddf.merge(small, on="k")
        merged.assign(z=merged.v * merged.w).groupby("k").z.agg(["mean", "std"]).compute()

    return dataframe


def nothing(x: int) -> int:
    """A task that does nothing."""
    return x


def no_ops(tasks: int = 20_000) -> None:
    """20,000 tasks that do nothing, and one that waits for all: all cost is Dask's own."""
    graph: dict[Any, Task] = {("x", i): Task(("x", i), nothing, i) for i in range(tasks)}
    graph["end",] = Task(("end",), max, List(*(task.ref() for task in graph.values())))
    assert Delayed(("end",), graph).compute() == tasks - 1


# -- tools --------------------------------------------------------------------------------------


@contextlib.contextmanager
def recording(folder: Path, costs: list[stageprof.Recording]) -> Iterator[None]:
    """stageprof, into a file."""
    with stageprof.profile(folder / "run.stageprof") as prof:
        yield
    costs.append(prof.recording)


@contextlib.contextmanager
def instrumented() -> Iterator[None]:
    """Pyinstrument in the caller's thread."""
    profiler = Pyinstrument()
    profiler.start()
    yield
    profiler.stop()


@dataclass
class Bench:
    """One workload under several tools: wall and CPU seconds by tool, one entry a round."""

    name: str
    work: Callable[[], None]
    tools: dict[str, Callable[[], AbstractContextManager[Any]]]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def round(self) -> None:
        """Run every tool once, in a random order, and the bare run first and last."""
        names = list(self.tools)
        random.shuffle(names)
        for name in names:
            busy, started = cpu_s(), time.perf_counter()
            with self.tools[name]():
                self.work()
                # What a tool does after the run (writing a report) is not the run's cost.
                stopped = time.perf_counter()
                used = cpu_s() - busy
            self.seconds.setdefault(name, []).append(stopped - started)
            self.cpu.setdefault(name, []).append(used)


def cpu_s() -> float:
    """CPU seconds so far of this process and of those that it started."""
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return sum(t.user + t.system for t in times)


def interval(figures: list[float], bare: list[float], draws: int = 2000) -> str:
    """Ratio of the medians, and the bootstrap interval of 95 % around it."""
    rng = random.Random(0)

    def ratio(a: list[float], b: list[float]) -> float:
        return statistics.median(a) / statistics.median(b)

    drawn = sorted(
        ratio(rng.choices(figures, k=len(figures)), rng.choices(bare, k=len(bare)))
        for _ in range(draws)
    )
    low, high = drawn[draws // 40], drawn[-draws // 40]
    return f"{ratio(figures, bare):.3f} | {low:.3f} to {high:.3f}"


def on_cluster(folder: Path, costs: list[stageprof.Recording]) -> dict[str, Any]:
    """Tools for a distributed run."""
    return {
        "nothing": contextlib.nullcontext,
        "stageprof": lambda: recording(folder, costs),
        "performance_report": lambda: performance_report(str(folder / "report.html")),
        "pyinstrument": instrumented,
    }


def on_threads(folder: Path, costs: list[stageprof.Recording]) -> dict[str, Any]:
    """Tools for a run on the threaded scheduler."""
    return {
        "nothing": contextlib.nullcontext,
        "stageprof": lambda: recording(folder, costs),
        "dask.diagnostics.Profiler": Profiler,
        "pyinstrument": instrumented,
    }


def run(
    rounds: int, folder: Path, names: list[str], tools: list[str]
) -> tuple[list[Bench], list[stageprof.Recording]]:
    """Some workloads under some tools, interleaved by round."""
    costs: list[stageprof.Recording] = []
    works = {"array": array, "dataframe": make_frame(), "no-op tasks": no_ops}
    works = {name: work for name, work in works.items() if name in names}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster),
    ):
        given = _only(tools, on_cluster(folder, costs))
        benches = [Bench(n, w, given) for n, w in works.items()]
        _rounds(benches, rounds)
    with dask.config.set(scheduler="threads", num_workers=2):
        given = _only(tools, on_threads(folder, []))
        local = [Bench(f"{n}, threads", w, given) for n, w in works.items()]
        _rounds(local, rounds)
    return benches + local, costs


def _only(tools: list[str], known: dict[str, Any]) -> dict[str, Any]:
    return {name: tool for name, tool in known.items() if not tools or name in tools}


def _rounds(benches: list[Bench], rounds: int) -> None:
    for bench in benches:
        bench.work()  # warm: first-use imports are not what is compared
    for i in range(rounds):
        for bench in benches:
            bench.round()
            print(f"round {i + 1}/{rounds}: {bench.name}", file=sys.stderr, flush=True)


# -- report -------------------------------------------------------------------------------------


def table(benches: list[Bench]) -> Iterator[str]:
    """The figures as markdown."""
    yield "| workload | bare, s | tool | wall | 95 % interval | target | CPU | 95 % interval |"
    yield "|---|---|---|---|---|---|---|---|"
    for bench in benches:
        bare = statistics.median(bench.seconds["nothing"])
        for tool in bench.tools:
            if tool != "nothing":
                wall = interval(bench.seconds[tool], bench.seconds["nothing"])
                cpu = interval(bench.cpu[tool], bench.cpu["nothing"])
                target = TARGETS.get(bench.name, "") if tool == "stageprof" else ""
                yield f"| {bench.name} | {bare:.2f} | {tool} | {wall} | {target} | {cpu} |"


def hooks(costs: list[stageprof.Recording]) -> Iterator[str]:
    """Microseconds a task that stageprof's hooks took by their own clock."""
    yield "| place | hook | calls a task | us a task |"
    yield "|---|---|---|---|"
    totals: dict[tuple[str, str], list[float]] = {}
    tasks = sum(len(rec.tasks()) for rec in costs)
    for rec in costs:
        for origin in rec.store.origins:
            for name, (calls, ns) in origin.cost.items():
                total = totals.setdefault((origin.place.role, name), [0.0, 0.0])
                total[0] += calls
                total[1] += ns
    for (role, name), (calls, ns) in sorted(totals.items()):
        yield f"| {role} | {name} | {calls / tasks:.2f} | {ns / tasks / 1e3:.2f} |"


def machine() -> str:
    """What this was measured on."""
    packages = ("dask", "distributed", "numpy", "pandas", "pyinstrument", "stageprof")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return (
        f"{os.cpu_count()} CPUs ({platform.machine()}), {platform.system()} "
        f"{platform.release().split('-')[0]}, Python {platform.python_version()}, {versions}."
    )


def main() -> None:
    """Run, print, and write if asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--workloads", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    options.add_argument("--tools", nargs="+", default=[], help="only these beside `nothing`")
    options.add_argument("--write", type=Path, help="put the tables between the markers there")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tools = [*given.tools, "nothing"] if given.tools else []
        benches, costs = run(given.rounds, Path(folder), given.workloads, tools)
        lines = [machine(), "", *table(benches), "", *hooks(costs)]
    text = "\n".join([f"{given.rounds} rounds. {lines[0]}", *lines[1:]])
    print(text)
    if given.write is not None:
        write(given.write, f"overhead: {', '.join(given.workloads)}", text)


def write(path: Path, name: str, text: str) -> None:
    """Replace what stands between `<!-- name -->` and `<!-- /name -->`."""
    whole = path.read_text() if path.exists() else f"<!-- {name} -->\n<!-- /{name} -->\n"
    before, _, rest = whole.partition(f"<!-- {name} -->")
    _, _, after = rest.partition(f"<!-- /{name} -->")
    path.write_text(f"{before}<!-- {name} -->\n{text}\n<!-- /{name} -->{after}")


if __name__ == "__main__":
    main()
