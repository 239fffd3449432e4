"""Real clusters for tests: with scheduler and workers in processes of their own, and local."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from distributed import Client, LocalCluster

from template import Forked, Template

TESTS = str(Path(__file__).parent)
#: What a command that was started can be asked for.
Started = subprocess.Popen[str] | Forked

#: Whether every process is a new interpreter.
FRESH = "STAGEPROF_TESTS_FRESH" in os.environ

#: The environment before the first test: some set variables for what they start.
usual: dict[str, str] = {}

#: Processes that belong to a cluster shared by several tests: not left over from one of them.
shared: set[int] = set()


@contextmanager
def separate(
    workers: int = 2, threads: int = 1, *, preload: Sequence[str] = (), options: Sequence[str] = ()
) -> Iterator[Client]:
    """A client of a scheduler and workers, all of which are there; see `served`."""
    started = served(workers, threads, preload=preload, options=options)
    with started as address, Client(address) as client:
        client.wait_for_workers(workers, timeout=60)
        yield client


@contextmanager
def served(
    workers: int, threads: int = 1, *, preload: Sequence[str] = (), options: Sequence[str] = ()
) -> Iterator[str]:
    """A scheduler, by its address, and workers, which may still be on their way.

    Started by Dask's own commands, each in its own process.
    """
    with ExitStack() as stack:
        scheduler = stack.enter_context(process("scheduler", "--port", "0", "--no-dashboard"))
        address = address_of(scheduler)
        for i in range(workers):
            extra = ["--preload", preload[i]] if i < len(preload) and preload[i] else []
            stack.enter_context(worker(address, threads, *extra, *options))
        yield address


def scheduler_of(client: Client) -> str:
    """The address of a client's scheduler."""
    return str(client.scheduler_info(n_workers=0)["address"])


@contextmanager
def worker(address: str, threads: int = 1, *options: str) -> Iterator[Started]:
    """One worker, without a nanny."""
    basic = ("--nthreads", str(threads), "--no-nanny", "--no-dashboard")
    with process("worker", address, *basic, *options) as started:
        yield started


@contextmanager
def process(command: str, *arguments: str, prefix: Sequence[str] = ()) -> Iterator[Started]:
    """One of Dask's commands in a process of its own."""
    started = _started(command, *arguments, prefix=prefix)
    shared.add(started.pid)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
        if started.stderr is not None:
            started.stderr.close()
        shared.discard(started.pid)


def _started(command: str, *arguments: str, prefix: Sequence[str] = ()) -> Started:
    environment = _environment()
    if not prefix and not FRESH and (template := _template()).fits(environment):
        return template.start([command, *arguments], environment["PYTHONPATH"])
    line = [*prefix, sys.executable, "-m", "dask", command, *arguments]
    return subprocess.Popen(
        line, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
    )


@cache
def _template() -> Template:
    template = Template(usual | {"PYTHONPATH": _environment()["PYTHONPATH"]})
    shared.add(template.pid)
    return template


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([TESTS, *sys.path])}


def address_of(scheduler: Started) -> str:
    """Where a scheduler that was just started listens."""
    assert scheduler.stderr is not None
    for line in scheduler.stderr:
        if "Scheduler at:" in line:
            return line.split()[-1]
    raise RuntimeError("the scheduler did not start")


@contextmanager
def local(workers: int = 2, threads: int = 1, **options: Any) -> Iterator[Client]:
    """A LocalCluster: client and scheduler share this process."""
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=threads, dashboard_address=":0", **options
        ) as cluster,
        Client(cluster) as client,
    ):
        mine = {child.pid for child in psutil.Process().children(recursive=True)} - shared
        shared.update(mine)
        try:
            yield client
        finally:
            shared.difference_update(mine)


@contextmanager
def inside(workers: int = 2, threads: int = 1) -> Iterator[Client]:
    """A LocalCluster whose workers share this process, too."""
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=threads, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def soon(condition: object, timeout: float = 30.0) -> None:
    """Wait until a condition holds; fails after `timeout` seconds."""
    assert callable(condition)
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.01)
