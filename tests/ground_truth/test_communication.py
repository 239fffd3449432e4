"""Slow links and big dependencies are read back as communication."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import clusters
import dask
import planted
import pytest
from distributed import Client
from truth import appears_in, read_back, record, step_seconds

#: One-way delay of the slow link, seconds, and what crosses it per second.
LINK_S = 0.15


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
    assert step.loc["data.transfer", "bytes"] >= 300_000_000
    longest = int((spans["stop"] - spans["start"])[spans["nbytes"] >= 300_000_000].max()) / 1e9
    loaded = step_seconds(big, "data.load") + step_seconds(big, "data.dump")
    assert moved + loaded == pytest.approx(longest, rel=0.05, abs=0.05)
    assert big.stages()["wall_s"]["communication"] > 0.8 * longest


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def slow_link() -> Iterator[tuple[str, str]]:
    """A network namespace behind a slow link; gives its name and the address on this side.

    Skips the test, loudly, where namespaces cannot be made.
    """
    name = f"sp{os.getpid()}"
    here, there = f"{name}a", f"{name}b"
    with ExitStack() as stack:
        try:
            _run("ip", "netns", "add", name)
            stack.callback(_run, "ip", "netns", "del", name)
            _run("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
            _run("ip", "addr", "add", "10.77.0.1/24", "dev", here)
            _run("ip", "link", "set", here, "up")
            inside = ("ip", "netns", "exec", name)
            _run(*inside, "ip", "addr", "add", "10.77.0.2/24", "dev", there)
            for device in (there, "lo"):
                _run(*inside, "ip", "link", "set", device, "up")
            _run("tc", "qdisc", "add", "dev", here, "root", "netem", "delay", f"{LINK_S}s")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"NO SLOW LINK TESTED: network namespaces cannot be made here ({error})")
        yield name, "10.77.0.1"


@pytest.mark.netns
def test_a_slow_link_between_scheduler_and_worker_is_communication(tmp_path: Path) -> None:
    """A worker behind a slow link: what its tasks wait for messages is communication.

    The link delays what goes to the worker: one way each for the task and for the acknowledging
    of what it sends, so a chain of n tasks waits about n times.
    """
    with slow_link() as (name, host), ExitStack() as stack:
        scheduler = stack.enter_context(
            clusters._process("scheduler", "--host", host, "--port", "0", "--no-dashboard")
        )
        address = clusters._address(scheduler)
        inside = ["ip", "netns", "exec", name, sys.executable, "-m", "dask", "worker", address]
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "10.77.0.2"]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([clusters.TESTS, *sys.path])}
        process = stack.enter_context(
            subprocess.Popen([*inside, *options], env=environment, stderr=subprocess.DEVNULL)
        )
        clusters.shared.add(process.pid)
        stack.callback(process.terminate)
        client = stack.enter_context(Client(address))
        client.wait_for_workers(1, timeout=60)

        def program(log: str, delay: float) -> None:
            for _ in range(3):
                client.submit(planted.work, log, delay, pure=False).result()

        reading = read_back(program, 0.1, tmp_path)
        stages = reading.recording.stages()["wall_s"]
        # Three tasks, each sent over the link once; fetching each result crosses it as well.
        assert stages["communication"] >= 3 * LINK_S * 0.95
        appears_in(reading, {"execution": reading.seconds("work")})
        assert stages["execution"] == pytest.approx(reading.seconds("work"), rel=0.1, abs=0.05)
        offset = reading.recording.workers()["offset_s"].abs().max()
        assert offset <= LINK_S


def test_dask_config_is_left_alone(cluster: Client) -> None:
    """Recording changes no setting of Dask's."""
    before = dask.config.config.copy()
    record(lambda: cluster.submit(planted.identity, 1).result())
    assert dask.config.config == before
