"""A hook that fails at every call is no reason to fill a log."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

#: What a broken hook may leave in the logs of all processes together, however long the run is.
LINES, BYTES = 10, 20_000

#: Client, scheduler and two workers in one process, whose logs are those of Dask's commands. Each
#: hook fails throughout a run of its own, and the last time what all of them emit with.
PROGRAM = """
import logging, sys
import dask, stageprof
from distributed import Client, LocalCluster
from stageprof_runtime import process
from stageprof_runtime.membership import Membership
from stageprof_runtime.probes import execution, serialization, waiting
from stageprof_runtime.scheduler_plugin import SchedulerProbe
from stageprof_runtime.shipper import Shipper
from stageprof_runtime.worker_plugin import WorkerProbe

n = int(sys.argv[1])
HOOKS = [
    (None, ""),
    (SchedulerProbe, "_note"),
    (WorkerProbe, "_note"),
    (Membership, "ping"),
    (Shipper, "_pack"),
    (execution, "finished"),
    (serialization, "_nbytes"),
    (waiting, "_block"),
    (process._Emitter, "row"),
]

def broken(*args, **kwargs):
    raise RuntimeError("broken " * 1_000)

def inc(x):
    return x + 1

def said(text):
    print(f"== {text}", file=sys.stderr, flush=True)

dask.config.set({"distributed.admin.log-format": "%(name)s %(message)s"})
with LocalCluster(
    n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=False
) as cluster, Client(cluster) as client:
    for owner, name in HOOKS:
        whole = owner and getattr(owner, name)
        said(f"{getattr(owner, '__name__', 'none').rpartition('.')[2]}.{name}")
        if owner:
            setattr(owner, name, broken)
        with stageprof.profile(gil=False):
            for _ in range(10):
                futures = client.map(inc, range(n // 10), pure=False)
                assert client.gather(futures) == list(range(1, n // 10 + 1))
        if owner:
            setattr(owner, name, whole)
    said("over")
"""


@pytest.mark.cluster
@pytest.mark.parametrize("tasks", [200, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_a_broken_hook_says_so_in_a_few_lines(
    tasks: int, record_property: Callable[[str, object], None]
) -> None:
    """F2: <= 10 lines and <= 20 kB in the logs of a run whose hook fails at every task."""
    line = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tasks)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    parts = [part.partition("\n") for part in done.stderr.split("== ")[1:]]
    said = {name: text for name, _, text in parts}
    noise = {name: (text.count("\n"), len(text.encode())) for name, text in said.items()}
    record_property("F2", noise)
    usual = noise.pop("none.")
    assert noise.pop("over") is not None  # there the cluster closes, which Dask logs
    assert noise["SchedulerProbe._note"] > usual
    for name, (lines, size) in noise.items():
        assert lines - usual[0] <= LINES, said[name]
        assert size - usual[1] <= BYTES, said[name]
