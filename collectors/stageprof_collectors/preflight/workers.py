"""Checks of the cluster: its threads and CPUs, workers that are not there yet, versions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from stageprof_collectors.findings.finding import Finding, Fix, Severity
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.rule import Limit, Limits
from stageprof_collectors.preflight.check import DOCUMENTATION, NOT_KNOWN, Check
from stageprof_collectors.preflight.cluster import Worker
from stageprof_collectors.preflight.plan import Plan
from stageprof_runtime.stage import Stage

#: Packages whose objects cross between processes: of other versions they may not be understood.
CROSSING: Final = frozenset(
    {"python", "dask", "distributed", "cloudpickle", "msgpack", "numpy", "pandas", "pyarrow"}
)

_THREADS: Final = (
    "Each thread runs one task at a time, so at most {threads} of the {cpus} CPUs of {host} work. "
    "Start workers with more threads, or more workers; where tasks are pure Python, more workers. "
    "Leave it where tasks use several CPUs themselves (BLAS, XGBoost)."
)
_CLUSTER: Final = """\
from dask.distributed import Client, LocalCluster

cluster = LocalCluster(n_workers={workers}, threads_per_worker={threads})
client = Client(cluster)"""
_WORKER: Final = "# dask worker SCHEDULER --nworkers {workers} --nthreads {threads}"

_LATE: Final = (
    "Dask gives the first tasks to the workers that are there; those that come later get what is "
    "left. Wait for them before the first computation, or go on knowingly."
)
_WAIT: Final = """\
from dask.distributed import get_client

get_client().wait_for_workers({workers})"""

_VERSIONS: Final = (
    "What one process pickles another has to understand: with other versions it may fail, or "
    "work on something else than was meant. Install the same versions everywhere."
)


def find_threads(plan: Plan, limits: Limits) -> Iterator[Finding]:
    """One finding for each machine with fewer threads than CPUs."""
    hosts: defaultdict[str, list[Worker]] = defaultdict(list)
    if plan.cluster is None or plan.cluster.late:  # those that are to come bring threads
        return
    for worker in plan.cluster.workers:
        hosts[worker.host].append(worker)
    for host, workers in hosts.items():
        threads, cpus = sum(w.threads for w in workers), max(w.cpus for w in workers)
        wanted = math.ceil(limits["threads"] * cpus)
        if threads < wanted:
            yield _threads(plan, host, workers, wanted)


def _threads(plan: Plan, host: str, workers: list[Worker], wanted: int) -> Finding:
    threads, cpus = sum(w.threads for w in workers), max(w.cpus for w in workers)
    severity = Severity.MODERATE if threads * 2 <= cpus else Severity.NOTE
    number, each = _shape(workers, wanted)
    local = plan.cluster is not None and plan.cluster.local
    return Finding(
        rule="threads-below-cpus",
        severity=severity,
        headline=(
            f"{count(len(workers), 'worker')} on {host} with {count(threads, 'thread')}, "
            f"which may use {cpus} CPUs"
        ),
        stage=Stage.EXECUTION,
        evidence={"threads": threads, "cpus": cpus, "workers": len(workers), "host": host},
        cost_s=NOT_KNOWN[0],
        saving_s=NOT_KNOWN,
        fix=Fix(
            _THREADS.format(threads=threads, cpus=cpus, host=host),
            (_CLUSTER if local else _WORKER).format(workers=number, threads=each),
        ),
        cause=f"threads:{host}",
        documentation=DOCUMENTATION,
    )


def _shape(workers: list[Worker], wanted: int) -> tuple[int, int]:
    """So many workers with so many threads each have as many threads as are wanted.

    As many workers as there are, if that goes; else more of them with as many threads or fewer.
    """
    if wanted % len(workers) == 0:
        return len(workers), wanted // len(workers)
    most = max(worker.threads for worker in workers)
    each = next((n for n in range(most, 0, -1) if wanted % n == 0), 1)
    return wanted // each, each


def find_late(plan: Plan, limits: Limits) -> Iterator[Finding]:
    """One finding if workers that were asked for are not there."""
    if plan.cluster is None or plan.cluster.late < limits["workers"]:
        return
    there, late = len(plan.cluster.workers), plan.cluster.late
    yield Finding(
        rule="late-workers",
        severity=Severity.MODERATE,
        headline=f"{there} of {there + late} workers are there: the rest gets what is left",
        stage=Stage.EXECUTION,
        evidence={"workers": there, "workers_asked_for": there + late},
        cost_s=NOT_KNOWN[0],
        saving_s=NOT_KNOWN,
        fix=Fix(_LATE, _WAIT.format(workers=there + late)),
        cause="late-workers",
        documentation=DOCUMENTATION,
    )


def find_versions(plan: Plan, _limits: Limits) -> Iterator[Finding]:
    """One finding for all packages."""
    told = plan.cluster.versions if plan.cluster is not None else {}
    differ = {name: versions for name, versions in told.items() if len(versions) > 1}
    if not differ:
        return
    grave = not CROSSING.isdisjoint(differ)
    text = "; ".join(
        f"{name} {', '.join(f'{v} ({n})' for v, n in versions.most_common())}"
        for name, versions in sorted(differ.items())
    )
    yield Finding(
        rule="versions-differ",
        severity=Severity.MODERATE if grave else Severity.NOTE,
        headline=f"Versions differ between client, scheduler and workers: {text}",
        stage=None,
        evidence={"packages": len(differ), **{name: _all(v) for name, v in differ.items()}},
        cost_s=NOT_KNOWN[0],
        saving_s=NOT_KNOWN,
        fix=Fix(_VERSIONS, "from dask.distributed import get_client\n\n"
                "get_client().get_versions(check=True)"),
        cause="versions",
        documentation=DOCUMENTATION,
    )  # fmt: skip


def _all(versions: dict[str, int]) -> str:
    return ", ".join(sorted(versions))


CHECKS = (
    Check(
        "threads-below-cpus",
        find_threads,
        {"threads": Limit(1.0, "for each CPU: with fewer some CPUs have nothing to do")},
    ),
    Check("late-workers", find_late, {"workers": Limit(1, "each of them was asked for")}),
    Check("versions-differ", find_versions),
)
