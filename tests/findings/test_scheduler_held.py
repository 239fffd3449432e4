"""The rule scheduler-held: a function that the scheduler's event loop runs keeps it for long."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from distributed import Client, Scheduler

import stageprof
from findings.asking import asked, one, run
from replay import handmade
from replay.handmade import CLIENT, SCHEDULER, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.scheduler_held import RULE
from stageprof_runtime.event import FLAME, NODE, SAMPLE, Place

#: Of an asynchronous program, which has it in its own process.
SHARED = SCHEDULER._replace(pid=CLIENT.pid)
LIBRARY = "/usr/lib/python3.11/site-packages/distributed/worker.py"


def program(
    *,
    stall: float = 800,
    seen: float = 700,
    file: str = "/u/etl.py",
    name: str = "reported",
    own: Place = SCHEDULER,
) -> Recording:
    """A run of 100 ms of which a loop hears after `stall` ms; a function was seen there."""
    made = HandMade(1)
    graph, end = made.graph(0, 0, 0), 200 + stall
    last = made.run(0, 0, 100, cause=-1 - graph, finished=end, wanted=True)
    rows = made.rows_of(own if own == SCHEDULER else made._workers[0])
    rows.append((SAMPLE, ns(end), "loop.stall_s", stall / 1e3))
    rows.append((NODE, 0, -1, "run", LIBRARY, 3000))
    rows.append((NODE, 1, 0, name, file, 24))
    rows.append((NODE, 2, 1, "sleep", LIBRARY, 29))
    rows.append((FLAME, ns(end), 0, "", "call", 2, 5, round(seen * 1e6)))
    made.wait(0, end, last, end)
    return made.recording(end)


def test_what_holds_the_loop_is_named_with_what_waited_for_it() -> None:
    found = one(RULE, program())
    assert found.headline == (
        "The scheduler's event loop did nothing but run `reported` at etl.py:24 for 800 ms (up to "
        "800 ms at a time): 800 ms of 1.00 s"
    )
    assert found.cost_s == pytest.approx(0.8)
    assert found.saving_s == pytest.approx((0.48, 0.8))
    assert (found.where.file, found.where.line) == ("/u/etl.py", 24)


@pytest.mark.parametrize(
    "other",
    [
        {"stall": 90, "seen": 90},  # comes and goes on any machine
        {"seen": 300},  # something else held it
        {"file": LIBRARY},  # Dask's own work
        {"name": "<module>"},  # it is imported there, which is gone in the second run
        {"own": "worker"},
    ],
)
def test_it_is_silent_of_others(other: dict[str, Any]) -> None:
    assert not asked(RULE, program(**other))


def asynchronous(
    *, holds: int = 8, tasks_until: float = 1000, seen: bool = True, how: str = "call"
) -> Recording:
    """A program on whose loop the scheduler is, too: `parse`, which `main` calls, holds it."""
    made, end = HandMade(1), 1000.0
    graph = made.graph(0, 0, 0)
    made.run(0, 0, 20, cause=-1 - graph, finished=20)
    last = made.run(0, 0, tasks_until, cause=-1 - graph, finished=tasks_until, wanted=True)
    rows = {place: made.rows_of(place) for place in (CLIENT, SHARED)}
    for place, mine in rows.items():
        mine.append((NODE, 0, -1, "main", "/u/etl.py", 40))
        mine.append((NODE, 1, 0, "parse", "/u/etl.py", 24))
        if seen or place == SHARED:
            mine.append((FLAME, ns(end - 1), 0, "", how, 1, 10, ns(90 * holds) - ns(0)))
    for i in range(holds):
        rows[SHARED].append((SAMPLE, ns(100 * i + 145), "loop.stall_s", 0.09))
        rows[SHARED].append((FLAME, ns(100 * i + 145), 0, "", "call", 1, 1, ns(90) - ns(0)))
    made.wait(0, tasks_until, last, tasks_until)
    return made.recording(end)


@pytest.fixture
def _shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handmade, "SCHEDULER", SHARED)


@pytest.mark.usefixtures("_shared")
def test_what_a_coroutine_calls_holds_the_scheduler_of_an_asynchronous_program() -> None:
    """Each time too short to count elsewhere; nothing on the critical path is the loop's."""
    found = one(RULE, asynchronous())
    assert "did nothing but run `parse` at etl.py:24 for 720 ms" in found.headline
    assert found.saving_s == pytest.approx((0.0, 0.28))  # as long as the rest takes
    assert "asyncio.create_task" in found.fix.text
    assert "await asyncio.to_thread(parse, *args, **kwargs)" in found.fix.code


@pytest.mark.usefixtures("_shared")
def test_what_only_waits_on_the_loop_may_all_be_saved() -> None:
    """Threads wait side by side."""
    assert one(RULE, asynchronous(how="waiting")).saving_s == pytest.approx((0.0, 0.72))


@pytest.mark.usefixtures("_shared")
@pytest.mark.parametrize("other", [{"tasks_until": 30}, {"seen": False}])
def test_an_asynchronous_program_may_hold_its_loop_else(other: dict[str, Any]) -> None:
    """After all tasks, or it is not the program's but one of the scheduler alone."""
    assert not asked(RULE, asynchronous(**other))


def test_nothing_is_said_to_be_all_right() -> None:
    """It was: no cause was known of most of such a run, and code in tasks was to be faster."""
    assert [found.rule for found in program().findings()] == [RULE.id]


def reported(dask_scheduler: Scheduler) -> int:
    time.sleep(0.6)
    return len(dask_scheduler.workers)


def soon(dask_scheduler: Scheduler) -> None:
    """Have it run once there are tasks, however long they take to come."""
    loop = asyncio.get_running_loop()
    if dask_scheduler.tasks:
        loop.call_soon(reported, dask_scheduler)
    else:
        loop.call_later(0.01, soon, dask_scheduler)


def worked(number: int) -> int:
    time.sleep(0.03)
    return number


@pytest.mark.cluster
def test_what_is_printed_gives_the_same_result_in_a_thread(client: Client) -> None:
    with stageprof.profile(gil=False) as region:
        client.run_on_scheduler(soon)
        client.gather(client.map(worked, range(20), pure=False))
    found = one(RULE, region.recording, share=0.0)
    first = reported.__code__.co_firstlineno
    assert (found.where.file, found.where.line) == (__file__, first + 1)
    instead = run(found, reported=reported)["reported_in_thread"]
    assert client.run_on_scheduler(instead) == client.run_on_scheduler(reported)
