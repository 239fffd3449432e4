"""What an object costs on each hop is read back from objects that time their own pickling."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client

import planted
import stageprof
from stageprof_runtime.compat import place
from stageprof_runtime.probes import serialization
from stageprof_runtime.stage import STEP

#: On a busy machine one may see a delay that nobody planted.
pytestmark = pytest.mark.flaky(reruns=2)

#: Each hop must be read back within this share and these seconds.
SHARE, SECONDS = 0.15, 0.05


def noted(log: Path, what: str, where: Callable[[int], bool]) -> float:
    """Seconds that objects noted of themselves, in processes of a kind."""
    rows = planted.truths(log)
    seconds = [row["seconds"] for row in rows if row["what"] == what and where(row["pid"])]
    return math.fsum(seconds)


@pytest.mark.parametrize("tasks", [1, 3])
def test_each_hop_has_its_own_seconds(client: Client, tmp_path: Path, tasks: int) -> None:
    """Client dump, scheduler load, scheduler dump of each task, worker load of each task."""
    log, mine = tmp_path / "log", os.getpid()
    scheduler = client.run_on_scheduler(os.getpid)
    thing = planted.Slow(str(log), 0.15, 0.2)
    calls = [dask.delayed(planted.identity)(i, thing) for i in range(tasks)]
    with stageprof.profile() as prof:
        dask.compute(*calls)
    found: Any = prof.recording.objects().iloc[0]
    hops = {
        "dump_s": noted(log, "dump", lambda pid: pid == mine),
        "load_s": noted(log, "load", lambda pid: pid == scheduler),
        "task_dump_s": noted(log, "dump", lambda pid: pid == scheduler),
        "task_load_s": noted(log, "load", lambda pid: pid not in (mine, scheduler)),
    }
    assert min(hops.values()) > 0
    for hop, seconds in hops.items():
        assert found[hop] == pytest.approx(seconds, rel=SHARE, abs=SECONDS), (hop, found)
    assert found["total_s"] == pytest.approx(sum(hops.values()), rel=SHARE, abs=SECONDS)
    assert found["tasks"] == tasks


def slow_messages(seconds: float) -> None:
    """Let each message of this process take so long to load, as a scheduler's first one does."""
    module, name = place("protocol.loads")
    loads = getattr(module, name)

    @functools.wraps(loads)
    def slow(*args: Any, **kwargs: Any) -> Any:
        planted.timed_sleep(os.devnull, "message", seconds)
        return loads(*args, **kwargs)

    setattr(module, name, slow)


def usual_messages() -> None:
    """Take it back."""
    module, name = place("protocol.loads")
    setattr(module, name, getattr(module, name).__wrapped__)


def test_the_load_of_the_message_is_not_the_graphs(client: Client, tmp_path: Path) -> None:
    """Both are loads of a graph; the object lies in the second, which is what it costs."""
    thing = planted.Slow(str(tmp_path / "log"), 0.05, 0.2)
    client.run_on_scheduler(slow_messages, 0.005)
    try:
        with stageprof.profile() as prof:
            dask.compute(dask.delayed(planted.identity)(1, thing))
    finally:
        client.run_on_scheduler(usual_messages)
    found: Any = prof.recording.objects().iloc[0]
    assert found["load_s"] == pytest.approx(0.2, rel=SHARE, abs=SECONDS)


def test_the_seconds_of_a_slow_object_are_not_the_large_ones(
    client: Client, tmp_path: Path
) -> None:
    """Beside an array, an object that is slow to pickle keeps its own seconds."""
    log = tmp_path / "log"
    thing, table = planted.Slow(str(log), 0.2, 0.2), np.ones(1_000_000)
    with stageprof.profile() as prof:
        dask.compute(dask.delayed(planted.identity)(1, thing, table))
    rows = prof.recording.objects().set_index("variable")
    assert rows["dump_s"]["thing"] == pytest.approx(0.2, rel=SHARE, abs=SECONDS)
    assert rows["dump_s"]["table"] < SECONDS
    assert rows["load_s"].sum() < 0.2 * (1 + SHARE) + 2 * SECONDS
    assert rows["nbytes"]["table"] == 8_000_000


def test_what_is_pickled_twice_is_counted_twice(client: Client, tmp_path: Path) -> None:
    """A graph in which something of `__main__` is found is dumped again, by cloudpickle."""
    log = tmp_path / "log"
    thing = planted.Slow(str(log), 0.1, 0.0)
    with stageprof.profile() as prof:
        dask.delayed(planted.identity)("__main__", thing).compute()
    dumps = noted(log, "dump", lambda pid: pid == os.getpid())
    assert dumps >= 0.2
    found: Any = prof.recording.objects().iloc[0]
    assert found["dump_s"] == pytest.approx(dumps, rel=SHARE, abs=SECONDS)
    assert found["copies"] == 1


def test_bytes_and_tasks_of_an_object_in_many_tasks(client: Client) -> None:
    """One copy travels to the scheduler, and one with each task from there."""
    table = np.ones(100_000)
    calls = [dask.delayed(planted.ignore)(table, i) for i in range(7)]
    with stageprof.profile() as prof:
        dask.compute(*calls)
    found: Any = prof.recording.objects().iloc[0]
    assert (found["nbytes"], found["copies"], found["tasks"]) == (800_000, 1, 7)
    assert found["graph_bytes"] == 800_000
    assert found["sent_bytes"] == pytest.approx(7 * 800_000, rel=0.01)
    assert len(found["layers"]) == 7
    assert found["computation"] == 0


def test_what_is_wrapped_is_sent_once_and_what_is_beside_it_with_each_task(client: Client) -> None:
    """No bytes of the one are said to be the other's."""
    table, other = np.ones(100_000), np.zeros(50_000)
    shared = dask.delayed(table, traverse=False)
    calls = [dask.delayed(planted.ignore)(shared, other, i) for i in range(7)]
    with stageprof.profile() as prof:
        dask.delayed(len)(calls).compute()
    rows: Any = prof.recording.objects().set_index("nbytes")
    assert rows["tasks"].to_dict() == {800_000: 1, 400_000: 7}
    assert rows["sent_bytes"].to_dict() == {800_000: 800_000, 400_000: 7 * 400_000}
    assert rows["layers"][800_000] == [shared.key]


def test_what_map_is_given_is_sent_with_each_task(client: Client) -> None:
    """Whether their messages were told one by one or together."""
    table = np.ones(100_000)
    with stageprof.profile() as prof:
        client.gather(client.map(planted.ignore, [table] * 7, range(7), pure=False))
    found: Any = prof.recording.objects().iloc[0]
    assert (found["tasks"], found["copies"]) == (7, 1)
    assert found["sent_bytes"] == pytest.approx(7 * 800_000, rel=0.01)


def test_the_process_scheduler_sends_a_copy_with_each_task() -> None:
    """Objects in tasks of the process scheduler; on threads nothing travels."""
    table = np.ones(100_000)
    calls = [dask.delayed(planted.ignore)(table, i) for i in range(3)]
    with stageprof.profile() as prof:
        dask.compute(*calls, scheduler="processes", num_workers=1)
    found: Any = prof.recording.objects().iloc[0]
    assert (found["variable"], found["nbytes"], found["tasks"]) == ("table", 800_000, 3)
    assert found["task_dump_s"] > 0
    with stageprof.profile() as prof:
        dask.compute(*calls, scheduler="threads")
    assert prof.recording.objects().empty


@pytest.mark.parametrize(
    ("message", "hop"),
    [
        (
            {"op": "shuffle_receive", "data": [b"x"], "shuffle_id": "1"},
            ("worker", "data.dump", "worker", "data.load"),
        ),
        (
            {"op": "proxy", "msg": {"op": "actor_execute", "args": ()}},
            ("client", "data.dump", "worker", "data.load"),
        ),
        (
            {"status": "OK", "result": 1},
            ("worker", "result.dump", "client", "result.load"),
        ),
        ({"op": "heartbeat_worker"}, ("worker", "task.dump", "worker", "task.load")),
    ],
)
def test_what_a_message_carries_says_whose_bytes_they_are(
    message: dict[str, Any], hop: tuple[str, str, str, str]
) -> None:
    """What P2P exchanges were results for the program, what an actor gave was tasks."""
    sender, dump, receiver, load = hop
    assert serialization._hop(message) == (sender, STEP[dump], receiver, STEP[load])
