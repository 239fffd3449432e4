"""A client that is killed while it records leaves nothing on the cluster, not even memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from distributed import Client

import clusters
import remains
from reliability.accounts import inc, right

pytestmark = pytest.mark.cluster

#: Records a computation that does not end before it is killed.
OWNER = """
import sys, time, distributed, stageprof
client = distributed.Client(sys.argv[1])
with stageprof.profile(sys.argv[2]):
    futures = client.map(lambda x: time.sleep(0.01) or x, range(10_000), pure=False)
    distributed.wait(futures[:20])
    print("on", flush=True)
    client.gather(futures)
"""
#: Seconds that everything may take to go.
GONE_S = 5


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with clusters.separate(2) as client:
        yield client


def _alive() -> list[str]:
    """What of a session is in this process's memory: its rows, and what makes and ships them."""
    import gc

    gc.collect()
    kinds = {"Ring", "SchedulerProbe", "WorkerProbe", "Relay", "Shipper", "Ticks"}
    found = (type(x) for x in gc.get_objects() if type(x).__name__ in kinds)
    return sorted(k.__name__ for k in found if k.__module__.startswith("stageprof_runtime"))


def alive(client: Client) -> list[str]:
    return [*client.run_on_scheduler(_alive), *(x for w in client.run(_alive).values() for x in w)]


@pytest.mark.alone
@pytest.mark.nightly
def test_when_the_owner_is_killed_plugins_and_memory_are_gone_within_five_seconds(
    client: Client, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """F7: and the workers and the scheduler go on computing for others."""
    line = [sys.executable, "-c", OWNER, clusters.scheduler_of(client), f"{tmp_path}/o.stageprof"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"on\n"
        assert {"Ring", "SchedulerProbe", "WorkerProbe"} <= set(alive(client))
        owner.kill()
        killed = time.monotonic()
        clusters.soon(lambda: remains.everywhere(client) == [], GONE_S)
        plugins = time.monotonic() - killed
        clusters.soon(lambda: alive(client) == [], GONE_S)
        memory = time.monotonic() - killed
    record_property("F7 seconds to be gone: plugins, memory", (plugins, memory))
    assert memory < GONE_S
    assert client.gather(client.map(inc, range(50), pure=False)) == right(50)
