"""Which graph a task belongs to: noted where several graphs are worked on, and only then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stageprof_runtime import belonging, graphs
from stageprof_runtime.belonging import Belonging
from stageprof_runtime.event import OWNER
from stageprof_runtime.ring import Ring
from stageprof_runtime.scheduler_plugin import SchedulerProbe


class Scheduler:
    """What is asked of Dask's: its tasks, and whether there is anything to do."""

    def __init__(self) -> None:
        self.tasks: dict[Any, Any] = {}
        self.queued: list[Any] = []
        self.unrunnable: dict[Any, Any] = {}
        self.processing: dict[Any, Any] = {}
        self.workers = {"w": SimpleNamespace(processing=self.processing)}

    def add(self, *keys: str, state: str = "released") -> tuple[str, ...]:
        """Tasks that are there."""
        for key in keys:
            told: dict[str, Any] = {"dependencies": [], "who_wants": [], "run_id": None}
            worker = SimpleNamespace(address="w")
            self.tasks[key] = SimpleNamespace(key=key, state=state, processing_on=worker, **told)
        return keys


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


def test_of_a_graph_that_is_alone_no_task_is_noted(scheduler: Scheduler) -> None:
    known = Belonging()
    assert known.took(scheduler, 0, scheduler.add("a", "b")) == 2
    assert known.took(scheduler, 1, scheduler.add("c")) == 1  # nothing is left to do of the first
    assert known.of is None


def test_when_a_second_graph_comes_the_tasks_of_both_are_noted(scheduler: Scheduler) -> None:
    known = Belonging()
    known.took(scheduler, 0, scheduler.add("a", "b"))
    scheduler.processing["a"] = 1
    known.took(scheduler, 1, scheduler.add("c"))
    assert known.of == {"a": 0, "b": 0, "c": 1}
    assert known.others is None


@pytest.mark.parametrize("state", ["waiting", "queued", "processing", "memory", "erred"])
def test_a_future_that_is_there_is_no_task_of_the_graph_that_needs_it(
    scheduler: Scheduler, state: str
) -> None:
    known = Belonging()
    known.took(scheduler, 0, scheduler.add("a"))
    scheduler.add("a", state=state)
    scheduler.queued.append("b")
    assert known.took(scheduler, 1, ["a", *scheduler.add("c")]) == 1
    assert known.of == {"a": 0, "c": 1}


def test_what_has_no_worker_yet_is_still_to_be_done(scheduler: Scheduler) -> None:
    known = Belonging()
    known.took(scheduler, 0, scheduler.add("a"))
    scheduler.unrunnable["a"] = 1
    known.took(scheduler, 1, scheduler.add("b"))
    assert known.of == {"a": 0, "b": 1}


def test_tasks_from_before_the_session_are_of_no_graph_until_nothing_is_left(
    scheduler: Scheduler,
) -> None:
    known = Belonging()
    scheduler.processing["earlier"] = 1
    known.took(scheduler, 0, scheduler.add("a"))
    assert (known.of, known.others) == ({"a": 0}, -1)
    scheduler.processing.clear()
    known.took(scheduler, 1, scheduler.add("b"))
    assert (known.of, known.others) == (None, None)


def test_keys_are_let_go_of_when_nothing_is_left_to_do(scheduler: Scheduler) -> None:
    known = Belonging()
    known.took(scheduler, 0, scheduler.add("a"))
    scheduler.processing["a"] = 1
    known.rest(scheduler)
    assert known._alone is not None
    known.took(scheduler, 1, scheduler.add("b"))
    known.rest(scheduler)
    assert known.of == {"a": 0, "b": 1}
    scheduler.processing.clear()
    known.rest(scheduler)
    assert (known.of or known._alone) is None


def test_notes_do_not_grow_with_tasks_that_are_forgotten(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that submits all the while never leaves its scheduler idle."""
    monkeypatch.setattr(belonging, "_FEW", 10)
    known = Belonging()
    scheduler.processing["x"] = 1
    for i in range(1000):
        known.took(scheduler, i, scheduler.add(f"k{i}"))
        scheduler.tasks.pop(f"k{i - 5}", None)
    assert known.of is not None
    assert len(known.of) <= 20
    assert known.of["k999"] == 999


# -- what the scheduler's hooks say of it ------------------------------------------------------


class Hooked:
    """A probe whose scheduler is made by hand."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler: Any = scheduler
        self.probe = SchedulerProbe("session", "Client-1", b"")
        self.probe._scheduler, self.probe._ring = self.scheduler, Ring()
        self.probe._counts, self.probe._relayed = [0, 0, 0], {}
        self._runs = 0

    def graph(self, number: int, *keys: str) -> list[int]:
        """A graph comes; its facts."""
        facts = [number, 0, 0]
        token = graphs._graph.set({"session": facts})
        new = [key for key in keys if key not in self.scheduler.tasks]
        self.scheduler.add(*new)
        self.probe.update_graph(self.scheduler, tasks=list(keys), keys=list(keys))
        graphs._graph.reset(token)
        self.scheduler.queued += new
        return facts

    def begin(self, key: str) -> int:
        """A task is given to a worker; its run."""
        run, self._runs = self._runs, self._runs + 1
        self.scheduler.tasks[key].run_id = run
        self.scheduler.tasks[key].state = "processing"
        self.scheduler.queued.remove(key)
        self.scheduler.processing[key] = 1
        self.probe.transition(key, "queued", "processing")
        return run

    def end(self, key: str) -> None:
        """Its run ends."""
        self.scheduler.tasks[key].state = "memory"
        del self.scheduler.processing[key]
        self.probe.transition(key, "processing", "memory")

    @property
    def owners(self) -> list[tuple[Any, ...]]:
        """What was said of runs."""
        assert not any(watch.failures for watch in self.probe.watches.values())
        return [row[1:] for row in self.probe._ring.rows if row[0] == OWNER]


def test_a_task_that_stood_in_line_behind_another_graph_is_said_to_be_of_its_own(
    scheduler: Scheduler,
) -> None:
    """Three submits, one thread: the second and third run because the one before has ended."""
    made = Hooked(scheduler)
    for number, key in enumerate("abc"):
        assert made.graph(number, key) == [number, 1, 1]
    first = made.begin("a")
    made.end("a")
    second = made.begin("b")
    made.end("b")
    third = made.begin("c")
    # the last graph that came was the third when the first one's task was begun
    assert made.owners == [(first, 0), (second, 1), (third, 2)]
    assert made.probe._counts == [3, 3, 2]


@pytest.mark.parametrize(("wanted", "counts"), [(True, [2, 0, 0]), (False, [1, 0, 0])])
def test_a_task_that_nobody_wants_any_more_is_none_that_is_to_come(
    wanted: bool, counts: list[int], scheduler: Scheduler
) -> None:
    """One that was lost with its worker comes again; one that was cancelled does not."""
    made = Hooked(scheduler)
    made.graph(0, *"ab")
    made.begin("a")
    task = made.scheduler.tasks["a"]
    task.who_wants, task.waiters, task.state = {"Client-1"} if wanted else set(), set(), "released"
    made.probe.transition("a", "processing", "released")
    assert made.probe._counts == counts


def test_nothing_is_said_of_a_graph_alone(scheduler: Scheduler) -> None:
    made = Hooked(scheduler)
    made.graph(0, *"abc")
    for key in "abc":
        made.begin(key)
        made.end(key)
    made.graph(1, "d")
    made.begin("d")
    assert made.owners == []


def test_runs_of_before_the_session_are_said_to_be_nobodys(scheduler: Scheduler) -> None:
    made = Hooked(scheduler)
    scheduler.add("earlier")
    scheduler.queued.append("earlier")
    made.graph(0, "a")
    run = made.begin("earlier")
    assert made.owners == [(run, -1)]
