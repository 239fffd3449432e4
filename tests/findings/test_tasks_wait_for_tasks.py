"""The rule tasks-wait-for-tasks: tasks that launch others, and wait for them in their threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from distributed import Client, get_client, wait, worker_client

import clusters
import stageprof
from replay.handmade import SCHEDULER, HandMade, ns
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.tasks_wait_for_tasks import RULE
from stageprof_runtime.event import BLOCK, GRAPH, MARK
from stageprof_runtime.states import LEFT

LIMITS = {name: limit.default for name, limit in RULE.limits.items()}


def ask(recording: Recording, **limits: float) -> list[Finding]:
    return list(RULE.find(recording, LIMITS | limits))


class Launched(HandMade):
    """Runs on two workers of one thread each, and graphs that runs hand over."""

    def launch(self, parent: int, at: float, tasks: int = 1) -> int:
        """A run hands a graph over; its cause."""
        g, self._graphs = self._graphs, self._graphs + 1
        row = (GRAPH, g, ns(at), ns(at), tasks, tasks, "Client-worker-1", parent)
        self._rows[SCHEDULER].append(row)
        return -1 - g

    def blocked(self, worker: int, start: float, stop: float, key: str) -> None:
        """The thread of a worker waits for a key."""
        thread, end = 100 * worker + 1, ns(stop)
        row = (BLOCK, ns(start), end, thread, "_gather", end, end, end, key)
        self._rows[self._workers[worker]].append(row)

    def left(self, worker: int, run: int) -> None:
        """A run leaves its thread."""
        self._rows[self._workers[worker]].append((MARK, ns(10), LEFT, str(run)))


def stuck(*, left: bool = False, threads: int = 2) -> Recording:
    """A task on each of some workers launches one; none of these is ever begun."""
    made = Launched(2)
    cause = -1 - made.graph(0, 0, 0, wanted=threads)
    for worker in range(threads):
        run = made.goes_on(worker, 0, cause=cause)
        made.launch(run, 100)
        if left:
            made.left(worker, run)
    made.waits_since(0)
    return made.broken_off(20_000)


def test_that_nothing_goes_on_any_more_is_told_with_who_holds_the_threads() -> None:
    (found,) = ask(stuck())
    assert found.cost_s == pytest.approx(19.9, abs=0.01)
    assert found.saving_s == (found.cost_s, found.cost_s)
    assert found.severity == Severity.CRITICAL
    assert found.headline.startswith("2 tasks of `task` hold all threads and wait for tasks that")
    assert "worker_client" in found.fix.code
    assert "task" in found.fix.code


@pytest.mark.parametrize("case", [{"left": True}, {"threads": 1}])
def test_where_threads_are_left_it_goes_on(case: dict[str, Any]) -> None:
    """Of what takes long, and of what waits for something else, nothing is said."""
    assert ask(stuck(**case)) == []


def test_what_lasts_for_a_moment_is_not_stuck() -> None:
    assert ask(stuck(), stuck_s=30) == []


def season(*, left: bool = False) -> Recording:
    """A task waits for eighteen of 100 ms, which have one thread of two meanwhile."""
    made = Launched(2)
    parent = made.run(0, 0, 1900, cause=-1 - made.graph(0, 0, 0), wanted=True)
    cause = made.launch(parent, 100, tasks=18)
    for i in range(18):
        start = 100 + 100.0 * i
        last = made.run(1, start, start + 100, cause=cause, lead=(100, 100), wanted=True)
    made.blocked(0, 100, 1900, f"task-{last}")
    if left:
        made.left(0, parent)
    made.wait(0, 1900, parent, 1900)
    return made.recording(1900)


def test_a_thread_that_is_held_while_others_wait_for_one_is_lost_to_them() -> None:
    """1.7 s of one of two threads: all is done 0.85 s sooner."""
    (found,) = ask(season())
    assert found.evidence["held_s"] == pytest.approx(1.7, abs=0.01)
    assert found.saving_s == pytest.approx((0.425, 0.85), abs=0.01)
    assert "1 task of `task` holds its thread for 1.70 s and wait" in found.headline


def test_one_that_left_its_thread_holds_none() -> None:
    assert ask(season(left=True)) == []


def test_a_run_without_tasks_that_launch_has_none() -> None:
    made = HandMade(1)
    run = made.run(0, 0, 100, cause=-1 - made.graph(0, 0, 0), wanted=True)
    made.wait(0, 100, run, 100)
    assert ask(made.recording(100)) == []


# -- in a real run --------------------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[Client]:
    """One worker with one thread, in this process."""
    with clusters.inside(1) as client:
        yield client


def inner(x: int) -> int:
    return x + 1


def outer(x: int) -> int:
    """Waits in its thread, not for ever."""
    return int(get_client().submit(inner, x, pure=False).result(timeout="4s"))


def polite(x: int) -> int:
    with worker_client() as client:
        return int(client.submit(inner, x, pure=False).result())


def test_a_task_that_waits_for_its_own_in_the_only_thread_is_found(client: Client) -> None:
    with stageprof.profile(gil=False) as prof:
        future = client.submit(outer, 1, pure=False)
        with pytest.raises(TimeoutError):
            future.result(timeout="2s")
    wait(future)
    (found,) = ask(prof.recording, stuck_s=1)
    assert found.where.prefix == "outer"
    assert found.evidence["threads"] == 1
    assert 1 < found.cost_s < prof.recording.wall


def test_one_that_leaves_its_thread_says_so(client: Client) -> None:
    with stageprof.profile(gil=False) as prof:
        assert client.submit(polite, 1, pure=False).result() == 2
    timeline = prof.recording.timeline
    assert len(timeline.marks(LEFT)) == 1
    assert ask(prof.recording, stuck_s=0, share=0) == []
