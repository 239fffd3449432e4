"""Slow links and big dependencies are read back as communication."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import dask.dataframe as dd
import pytest
from distributed import Client

import clusters
import planted
from truth import appears_in, read_back, record, step_seconds

#: The slow link, and how much is sent over it: about a second.
RATE = ("tbf", "rate", "80mbit", "burst", "64kbit", "latency", "500ms")
NBYTES = 10_000_000


def big_dependency(nbytes: int, client: Client) -> None:
    """A result on one worker that is needed on the other."""
    first, second = list(client.scheduler_info()["workers"])
    made = client.submit(planted.blob, nbytes, workers=first, pure=False)
    done = client.submit(planted.size, made, workers=second, pure=False)
    assert done.result() == nbytes


def test_a_big_dependency_is_a_transfer(cluster: Client) -> None:
    """300 MB that are needed on the other worker are data.transfer on the path."""
    big_dependency(1000, cluster)
    small = record(lambda: big_dependency(1000, cluster))
    big = record(lambda: big_dependency(300_000_000, cluster))
    moved = step_seconds(big, "data.transfer") - step_seconds(small, "data.transfer")
    spans, step = big.timeline.spans, big.steps().set_index("step")
    assert int(step["bytes"]["data.transfer"]) >= 300_000_000
    longest = int((spans["stop"] - spans["start"])[spans["nbytes"] >= 300_000_000].max()) / 1e9
    loaded = step_seconds(big, "data.load") + step_seconds(big, "data.dump")
    assert moved + loaded == pytest.approx(longest, rel=0.05, abs=0.05)
    assert big.stages()["wall_s"]["communication"] > 0.8 * longest


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


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def slow_link() -> Iterator[tuple[list[str], str, str]]:
    """A network namespace whose way out is slow.

    Gives a command prefix for it, the address on this side and on that one. Skips the test,
    loudly, where namespaces cannot be made.
    """
    name = f"sp{os.getpid()}"
    here, there = f"{name}a", f"{name}b"
    inside = ["ip", "netns", "exec", name]
    with ExitStack() as stack:
        try:
            _run("ip", "netns", "add", name)
            stack.callback(_run, "ip", "netns", "del", name)
            _run("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
            _run("ip", "addr", "add", "10.77.0.1/24", "dev", here)
            _run("ip", "link", "set", here, "up")
            _run(*inside, "ip", "addr", "add", "10.77.0.2/24", "dev", there)
            for device in (there, "lo"):
                _run(*inside, "ip", "link", "set", device, "up")
            _run(*inside, "tc", "qdisc", "add", "dev", there, "root", *RATE)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"NO SLOW LINK TESTED: it cannot be made here ({error})")
        yield inside, "10.77.0.1", "10.77.0.2"


def alone(inside: list[str], host: str) -> float:
    """Seconds that a plain socket takes for as many bytes over the same link."""
    code = f"""
import socket
s = socket.create_connection(("{host}", int(input())))
s.recv(1); s.sendall(bytes({NBYTES})); s.recv(1)
"""
    with socket.create_server((host, 0)) as server:
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


@pytest.mark.netns
def test_a_slow_link_is_communication() -> None:
    """A result over a slow link is as much communication as a plain socket takes for its bytes."""
    with slow_link() as (inside, host, other), ExitStack() as stack:
        scheduler = stack.enter_context(
            clusters.process("scheduler", "--host", host, "--port", "0", "--no-dashboard")
        )
        address = clusters.address_of(scheduler)
        worker = ("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        stack.enter_context(clusters.process(*worker, "--host", other, prefix=inside))
        client = stack.enter_context(Client(address))
        client.wait_for_workers(1, timeout=60)

        def fetch(nbytes: int) -> None:
            assert client.submit(planted.blob, nbytes, pure=False).result().nbytes == nbytes

        fetch(1000)
        small = record(lambda: fetch(1000))
        truths = [alone(inside, host)]
        big = record(lambda: fetch(NBYTES))
        truths.append(alone(inside, host))
        found = big.stages()["wall_s"] - small.stages()["wall_s"]
        slack = 0.05 + 0.05 * max(truths)
        assert min(truths) - slack <= found["communication"] <= max(truths) + slack
        others = found.drop(["communication", "outside"])
        assert (others.abs() < slack).all(), found
