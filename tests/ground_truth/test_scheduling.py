"""What the scheduler does is scheduling: ordering a large graph, and what follows a task's end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.local
import dask.order
import dask.threaded
import pytest
from dask._task_spec import Task
from distributed import Client, wait

import clusters
import planted
from truth import Reading, appears_in, in_steps, read_back, record, step_seconds

#: Chains of this many tasks, so many of them.
LENGTH, CHAINS = 50, 4000


def graph(chains: int) -> dict[Any, Any]:
    """Chains of small tasks, as a low-level graph."""
    tasks: dict[Any, Any] = {}
    for c in range(chains):
        tasks["x", c, 0] = Task(("x", c, 0), planted.identity, c)
        for i in range(1, LENGTH):
            before = tasks["x", c, i - 1]
            tasks["x", c, i] = Task(("x", c, i), planted.identity, before.ref())
    return tasks


def timed_order(log: str) -> None:
    """Make a process note how long each ordering takes there."""
    dask.order.order = planted.timed(log, "order", dask.order.order)


def check_on_cluster(chains: int, folder: Path) -> None:
    """Order a graph on a scheduler that times itself, and read it back."""
    tasks, log = graph(chains), folder / "log"
    keys = [("x", c, LENGTH - 1) for c in range(chains)]
    with clusters.separate(1, 2) as client:
        client.run_on_scheduler(timed_order, str(log))

        given: list[Any] = []

        def program() -> None:
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):
                # No worker may run them: to let go of so many takes Dask minutes.
                given.extend(client.get(tasks, keys, sync=False, resources={"nobody has": 1}))
            clusters.soon(lambda: planted.truths(log), 90)

        recording = record(program)
    truth = sum(t["seconds"] for t in planted.truths(log))
    busy = recording.steps().query("step == 'order'")["busy_s"].sum()
    assert busy == pytest.approx(truth, rel=0.05, abs=0.05)


@pytest.mark.nightly
def test_ordering_200_000_tasks_on_a_cluster(tmp_path: Path) -> None:
    """The step order is as long as the ordering was by its own clock."""
    check_on_cluster(CHAINS, tmp_path)


def test_ordering_on_a_cluster(tmp_path: Path) -> None:
    """The same with 20,000 tasks."""
    check_on_cluster(400, tmp_path)


def slow_order(log: str, seconds: float) -> None:
    """Have a process take so long for each ordering; 0: as long as it takes."""
    order: Any = dask.order.order
    plain = getattr(order, "plain", order)

    def slow(*args: Any, **kwargs: Any) -> Any:
        planted.timed_sleep(log, "order", seconds)
        return plain(*args, **kwargs)

    vars(slow)["plain"] = plain
    dask.order.order = slow if seconds else plain


def test_a_program_waits_for_ordering_on_a_cluster(cluster: Client, tmp_path: Path) -> None:
    """It is scheduling on the path; a client that is in the same process puts results in order."""
    log = str(tmp_path / "log")

    def compute() -> None:
        dask.delayed(planted.identity)(1).compute(scheduler=cluster)

    compute()
    baseline = record(compute)
    cluster.run_on_scheduler(slow_order, log, 0.8)
    try:
        recording = record(compute)
    finally:
        cluster.run_on_scheduler(slow_order, log, 0.0)
    reading = Reading(recording, baseline, planted.truths(log))
    appears_in(reading, {"scheduling": reading.seconds("order")})
    in_steps(reading, {"order": reading.seconds("order")})


def test_ordering_on_the_threaded_scheduler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The step order on the path is as long as the ordering was by its own clock."""
    tasks, log = graph(400), tmp_path / "log"
    keys = [("x", c, LENGTH - 1) for c in range(400)]
    monkeypatch.setattr(dask.local, "order", planted.timed(str(log), "order", dask.local.order))
    recording = record(lambda: dask.threaded.get(tasks, keys))
    (truth,) = planted.truths(log)
    assert step_seconds(recording, "order") == pytest.approx(truth["seconds"], rel=0.05, abs=0.05)


@pytest.mark.parametrize(
    ("task", "finish"), [(planted.identity, "memory"), (planted.fail, "erred")]
)
def test_what_the_scheduler_does_as_a_task_ends_is_scheduling(
    cluster: Client, task: Callable[[int], object], finish: str, tmp_path: Path
) -> None:
    """A plugin that is slow at the end of each of three runs, of which nobody hears before."""

    def program(log: str, delay: float) -> None:
        cluster.register_plugin(planted.slow_plugin(log, delay, finish))
        for i in range(3):
            wait(cluster.submit(task, i, pure=False))
        cluster.unregister_scheduler_plugin("slow")

    reading = read_back(program, 0.4, tmp_path)
    appears_in(reading, {"scheduling": reading.seconds("transition")})
    assert step_seconds(reading.recording, "transition") >= 0.95 * reading.seconds("transition")


def test_waiting_for_a_scheduler_whose_loop_is_held_is_scheduling(
    cluster: Client, tmp_path: Path
) -> None:
    """By what no probe knows; whatever is under way then waits for the loop."""

    def program(log: str, delay: float) -> None:
        cluster.run_on_scheduler(planted.hold_soon, log, delay)
        while not planted.truths(log):
            wait(cluster.submit(planted.identity, 1, pure=False))

    reading = read_back(program, 1.0, tmp_path)
    appears_in(reading, {"scheduling": reading.seconds("held")})
