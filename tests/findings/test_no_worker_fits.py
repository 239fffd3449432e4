"""The rule no-worker-fits: tasks that none of the workers may run."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Client

import clusters
import stageprof
from replay.handmade import SCHEDULER, HandMade, ns
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.no_worker_fits import RULE
from stageprof_runtime.event import MARK, SAMPLE
from stageprof_runtime.ring import Ring
from stageprof_runtime.unrunnable import MANY, MOST, WHY, Unrunnable

LIMITS = {name: limit.default for name, limit in RULE.limits.items()}


def ask(recording: Recording) -> list[Finding]:
    return list(RULE.find(recording, LIMITS))


def waiting(said: str, *, until: float = 5000) -> Recording:
    """A task that no worker may run for some time, ms; then one comes, and it takes a second."""
    made = HandMade(1)
    graph = made.graph(0, 0, 0)
    rows = made.rows_of(SCHEDULER)
    rows += [(SAMPLE, ns(at), MANY, 3.0) for at in range(100, round(until), 500)]
    rows += [(SAMPLE, ns(until), MANY, 0.0), (MARK, ns(100), WHY, said)]
    run = made.run(0, until, until + 1000, cause=-1 - graph, lead=(until, until), wanted=True)
    made.wait(0, until + 1000, run, until + 1000)
    return made.recording(until + 1000)


def test_what_tasks_need_and_no_worker_has_is_told_with_how_long_they_waited() -> None:
    (found,) = ask(waiting("task\tDISK=1, GPU=0.5\t"))
    assert found.cost_s == pytest.approx(4.9)
    assert found.saving_s == (found.cost_s, found.cost_s)
    assert found.severity == Severity.CRITICAL
    said = "3 tasks (`task` at etl.py:1) need DISK=1, GPU=0.5, which no worker has: 4.90 s"
    assert found.headline.startswith(said)
    assert "resources={'DISK': 1, 'GPU': 0.5}" in found.fix.code


def test_workers_that_are_not_there_are_named() -> None:
    (found,) = ask(waiting("task\t\ttcp://10.0.0.1:1234"))
    assert "are to be on tcp://10.0.0.1:1234, which is not there" in found.headline
    assert "allow_other_workers" in found.fix.text
    assert found.fix.code == ""


def test_a_worker_that_comes_soon_is_no_finding() -> None:
    assert ask(waiting("task\tGPU=1\t", until=150)) == []


def test_nothing_of_a_name_is_code() -> None:
    (found,) = ask(waiting("task\tG': print('x'), 'U=1, A=__import__\t"))
    assert """resources={"'U": 1})""" in found.fix.code


# -- what the scheduler is asked ------------------------------------------------------------------


@dataclass(eq=False)
class Task:
    """What a scheduler knows of one."""

    key: str
    resource_restrictions: Any = None
    worker_restrictions: Any = None
    host_restrictions: Any = None


def told(scheduler: Any, looks: int = 1) -> list[tuple[Any, ...]]:
    ring = Ring()
    unrunnable = Unrunnable(ring, scheduler)
    for _ in range(looks):
        unrunnable.tell()
    return ring.take()


def test_why_is_told_once_and_how_many_at_each_look() -> None:
    one = Task("load-1", resource_restrictions={"GPU": 2})
    rows = told(SimpleNamespace(unrunnable={one: 0.0}, workers={"a": None}), looks=3)
    assert [row[3] for row in rows if row[0] == MARK] == ["load\tGPU=2\t"]
    assert [row[3] for row in rows if row[0] == SAMPLE] == [1.0, 1.0, 1.0]


def test_of_a_scheduler_without_such_tasks_nothing_is_told() -> None:
    assert told(SimpleNamespace(unrunnable={}, workers={"a": None}), looks=3) == []


def test_without_any_worker_it_is_not_what_tasks_need() -> None:
    one = Task("load-1", resource_restrictions={"GPU": 2})
    rows = told(SimpleNamespace(unrunnable={one: 0.0}, workers={}))
    assert [row[0] for row in rows] == [SAMPLE]


def test_reasons_are_bounded() -> None:
    ring = Ring()
    scheduler = SimpleNamespace(unrunnable={}, workers={"a": None})
    unrunnable = Unrunnable(ring, scheduler)
    for i in range(MOST + 5):
        scheduler.unrunnable = {Task(f"load{i}x-1", host_restrictions={f"h{i}"}): 0.0}
        unrunnable.tell()
    assert sum(row[0] == MARK for row in ring.take()) == MOST


# -- in a real run --------------------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[Client]:
    with clusters.inside(1) as client:
        yield client


def inc(x: int) -> int:
    return x + 1


def test_a_real_scheduler_tells_what_none_of_its_workers_has(client: Client) -> None:
    with stageprof.profile(gil=False) as prof:
        futures = client.map(inc, range(3), resources={"GPU": 1})
        with pytest.raises((TimeoutError, Late)):
            futures[0].result(timeout="2s")
        client.cancel(futures)
    (found,) = ask(prof.recording)
    assert found.evidence["resources"] == "GPU=1"
    assert found.evidence["tasks"] == 3
    assert Path(found.where.file).name == Path(__file__).name
    assert 0.5 < found.cost_s < prof.recording.wall
