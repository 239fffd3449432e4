"""Slow links and big dependencies are read back as communication."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import Client, Worker
from numpy.typing import NDArray

import clusters
import link
import planted
from link import HERE, THERE
from truth import appears_in, read_back, record, step_seconds

#: The slow link, in seconds each way and bytes a second, and how much goes over it: one second.
DELAY_S, RATE, NBYTES = 0.01, 9e6, 9_000_000

Array = NDArray[np.uint8]


def big_dependency(nbytes: int, client: Client) -> None:
    """A result on one worker that is needed on the other."""
    first, second = list(client.scheduler_info()["workers"])
    made = client.submit(planted.blob, nbytes, workers=first, pure=False)
    done = client.submit(planted.size, made, workers=second, pure=False)
    assert done.result() == nbytes


def timed_fetches(log: str, dask_worker: Worker) -> None:
    """Have a worker note how long each of its fetches takes, until it has what came unpacked."""

    async def timed(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        event = await Worker.gather_dep(dask_worker, *args, **kwargs)
        planted.note(log, "fetch", started)
        return event

    vars(dask_worker)["gather_dep"] = timed


def timed_no_more(dask_worker: Worker) -> None:
    """Have it note no more."""
    del vars(dask_worker)["gather_dep"]


def test_a_big_dependency_is_a_transfer(cluster: Client, tmp_path: Path) -> None:
    """300 MB that are needed on the other worker are data.transfer on the path."""
    log = str(tmp_path / "log")
    big_dependency(1000, cluster)
    small = record(lambda: big_dependency(1000, cluster))
    cluster.run(timed_fetches, log)
    try:
        big = record(lambda: big_dependency(300_000_000, cluster))
    finally:
        cluster.run(timed_no_more)
    (fetch,) = planted.truths(log)
    steps = ("data.transfer", "data.load", "data.dump")
    moved = sum(step_seconds(big, step) - step_seconds(small, step) for step in steps)
    assert moved == pytest.approx(fetch["seconds"], rel=0.05, abs=0.05)
    assert int(big.steps().set_index("step")["bytes"]["data.transfer"]) >= 300_000_000
    assert big.stages()["wall_s"]["communication"] > 0.8 * fetch["seconds"]


def test_scattering_is_a_transfer_whatever_runs_meanwhile(cluster: Client) -> None:
    """300 MB go to the workers while a task runs, for which nobody waits."""
    took: list[float] = []
    data = planted.blob(300_000_000)

    def program() -> None:
        slow = cluster.submit(time.sleep, 0.3, pure=False)
        start = time.perf_counter()
        there = cluster.scatter(data, hash=False)
        took.append(time.perf_counter() - start)
        del there
        slow.result()

    recording = record(program)

    steps = ("data.transfer", "data.dump", "data.load")
    assert sum(step_seconds(recording, step) for step in steps) == pytest.approx(
        took[0], rel=0.05, abs=0.05
    )


@pytest.mark.parametrize("step", ["data.dump", "tokenize"])
def test_what_scattering_does_at_the_client_is_no_transfer(
    cluster: Client, step: str, tmp_path: Path
) -> None:
    """A thread dumps what is large, and the event loop hashes it, and its caller waits."""
    log, hashed = str(tmp_path / "log"), step == "tokenize"
    slow = planted.SlowToken(log, 0.4) if hashed else planted.Slow(log, 0.4, 0.0)
    recording = record(lambda: cluster.scatter([slow], hash=hashed))

    took = sum(noted["seconds"] for noted in planted.truths(log))
    assert step_seconds(recording, step) == pytest.approx(took, rel=0.05, abs=0.05)
    assert step_seconds(recording, "data.transfer") < 0.1


def test_an_exchange_by_p2p_waits_for_messages(cluster: Client, tmp_path: Path) -> None:
    """Pieces are long on their way to the other workers, and the barrier waits for them."""

    def program(log: str, delay: float) -> None:
        cluster.run(planted.slow_exchange, log, delay)
        frame = dd.from_dict({"x": range(100), "y": range(100)}, npartitions=2)
        frame.shuffle("x", shuffle_method="p2p").map_partitions(len).compute()
        cluster.run(planted.slow_exchange, log, 0.0)

    reading = read_back(program, 0.8, tmp_path)
    sent = [noted["seconds"] for noted in reading.truth]
    appears_in(reading, {"communication": max(sent)})
    work = reading.recording.steps().set_index("step")
    assert work["waited_s"]["data.transfer"] >= 0.95 * max(sent)
    assert work["busy_s"]["compute"] < 0.5 * max(sent)


@contextmanager
def apart(scheduler: str, *workers: str) -> Iterator[tuple[Client, tuple[str, ...]]]:
    """Each process at an address, of this side of the slow link or of that one.

    Gives a client on this side, and the command prefix for the other one.
    """
    with link.slow(DELAY_S, rate=RATE) as inside, ExitStack() as stack:

        def start(command: str, host: str, *options: str) -> clusters.Started:
            prefix = inside if host == THERE else ()
            words = (command, *options, "--host", host, "--no-dashboard")
            return stack.enter_context(clusters.process(*words, prefix=prefix))

        address = clusters.address_of(start("scheduler", scheduler, "--port", "0"))
        for host in workers:
            start("worker", host, address, "--nthreads", "1", "--no-nanny")
        client = stack.enter_context(Client(address, timeout=60))
        client.wait_for_workers(len(workers), timeout=60)
        yield client, inside


def alone(inside: Sequence[str]) -> float:
    """Seconds that a plain socket takes for as many bytes over the same link."""
    code = f"""
import socket
s = socket.create_connection(("{HERE}", int(input())))
s.recv(1); s.sendall(bytes({NBYTES})); s.recv(1)
"""
    with socket.create_server((HERE, 0)) as server:
        command = [*inside, sys.executable, "-c", code]
        with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as sender:
            assert sender.stdin is not None
            sender.stdin.write(f"{server.getsockname()[1]}\n")
            sender.stdin.close()
            connection, _ = server.accept()
            with connection:
                started = time.perf_counter()
                connection.sendall(b"!")
                left = NBYTES
                while left:
                    left -= len(connection.recv(1 << 16))
                seconds = time.perf_counter() - started
                connection.sendall(b"!")
    return seconds


def result(data: Array, client: Client) -> None:
    """Comes to the client."""
    assert client.submit(planted.blob, len(data), pure=False).result().nbytes == len(data)


def graph(data: Array, client: Client) -> None:
    """Holds the data, and goes to the scheduler."""
    assert dask.delayed(planted.size)(data).compute(scheduler=client) == len(data)


def dependency(data: Array, client: Client) -> None:
    """Goes from one worker to the other."""
    big_dependency(len(data), client)


@pytest.mark.netns
@pytest.mark.parametrize(
    ("program", "step", "scheduler", "workers"),
    [
        (graph, "graph.send", THERE, [THERE]),
        (result, "result.gather", THERE, [THERE]),
        (result, "result.gather", HERE, [THERE]),
        (dependency, "data.transfer", HERE, [HERE, THERE]),
    ],
    ids=["to the scheduler", "from the scheduler", "from a worker", "between workers"],
)
def test_a_slow_link_is_communication(
    program: Callable[[Array, Client], None], step: str, scheduler: str, workers: list[str]
) -> None:
    """Data over a slow link are as much communication as a plain socket takes for their bytes."""
    with apart(scheduler, *workers) as (client, inside):
        few, many = (planted.blob(nbytes) for nbytes in (1000, NBYTES))
        program(few, client)
        small = record(lambda: program(few, client))
        truths = [alone(inside)]
        big = record(lambda: program(many, client))
        truths.append(alone(inside))
    found = big.stages()["wall_s"] - small.stages()["wall_s"]
    slack = 0.05 + 0.05 * max(truths)
    assert min(truths) - slack <= found["communication"] <= max(truths) + slack, found
    others = found.drop(["communication", "outside"])
    assert (others.abs() < slack).all(), found
    moved = step_seconds(big, step) - step_seconds(small, step)
    assert moved == pytest.approx(found["communication"], abs=slack)
