"""Tasks that have not ended are shown while a run goes on, as the scheduler tells of them."""

from __future__ import annotations

from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import ASSIGN, FINISH, MARK, NO_CAUSE, RUN, Place
from stageprof_ui.columns.growth import UNIT_NS, Growth
from stageprof_ui.columns.running import Given, Open

CLIENT = Place("client", "here", 1, "client", 0)
SCHEDULER = Place("scheduler", "here", 2, "tcp://s:1", 0)
WORKER = Place("worker", "here", 3, "tcp://w:1", 0)

MS = 10**6
SEEN = (MARK, MS, "worker seen", "tcp://w:1 2 1000 alice")


def assigned(run: int, key: str, t: int) -> tuple[object, ...]:
    return (ASSIGN, run, t, "tcp://w:1", NO_CAUSE, key)


def ran(run: int, start: int, stop: int, thread: int = 1) -> tuple[object, ...]:
    return (RUN, run, start, start, start, stop, thread, 0, "tcp://w:1")


def finished(run: int, t: int) -> tuple[object, ...]:
    return (FINISH, run, t, 0, 8, "int")


def begun(*rows: tuple[object, ...]) -> tuple[Store, Growth]:
    """A run of which the scheduler has told some rows, and whose worker is there."""
    store, growth = Store(), Growth()
    store.add(pack(CLIENT, 0, MS, []))
    store.add(pack(WORKER, 0, MS, []))
    store.add(pack(SCHEDULER, 0, 9 * MS, [SEEN, *rows]))
    growth.look(store)
    return store, growth


def test_a_task_runs_from_when_it_was_given_away_until_it_ends() -> None:
    store, growth = begun(assigned(1, "inc-1", 4 * MS))
    task = growth.now[0]
    assert (task.key, growth.layers[task.layer].name) == ("inc-1", "inc")
    assert growth.lines[task.row].label == "worker alice, thread 1"
    assert task.start * UNIT_NS == 4 * MS - 1 * MS
    assert task.age == (9 - 4) / 1e3
    store.add(pack(WORKER, 1, 10 * MS, [ran(1, 5 * MS, 8 * MS)]))
    growth.look(store)
    assert growth.now == []
    assert growth.boxes().offsets.tolist() == [0, 1]


def test_the_scheduler_alone_may_say_that_it_ended() -> None:
    """As of a task that was lost, or whose worker is not instrumented."""
    store, growth = begun(assigned(1, "inc-1", 4 * MS))
    store.add(pack(SCHEDULER, 1, 10 * MS, [finished(1, 10 * MS)]))
    growth.look(store)
    assert growth.now == []


def test_a_worker_runs_as_many_as_it_has_threads_the_oldest() -> None:
    _, growth = begun(*(assigned(i, f"inc-{i}", (2 + i) * MS) for i in range(5)))
    assert [task.key for task in growth.now] == ["inc-0", "inc-1"]
    assert [growth.lines[task.row].label for task in growth.now] == [
        "worker alice, thread 1",
        "worker alice, thread 2",
    ]


def test_a_task_that_waited_for_a_thread_is_drawn_behind_the_one_before() -> None:
    store, growth = begun(*(assigned(i, f"inc-{i}", 2 * MS) for i in range(3)))
    store.add(pack(WORKER, 1, 10 * MS, [ran(0, 3 * MS, 7 * MS, thread=70)]))
    growth.look(store)
    rows = {task.key: task for task in growth.now}
    assert set(rows) == {"inc-1", "inc-2"}
    assert len({task.row for task in growth.now}) == 2
    after = max(task.start for task in growth.now) * UNIT_NS
    assert after >= 6 * MS


def test_a_thread_that_tells_of_its_first_task_takes_the_row_that_was_drawn_for_it() -> None:
    store, growth = begun(assigned(0, "inc-0", 2 * MS), assigned(1, "inc-1", 2 * MS))
    both = [ran(0, 3 * MS, 7 * MS, thread=70), ran(1, 3 * MS, 8 * MS, thread=71)]
    store.add(pack(WORKER, 1, 10 * MS, both))
    growth.look(store)
    assert [line.label for line in growth.lines] == [
        "worker alice, thread 1",
        "worker alice, thread 2",
    ]
    assert growth.boxes().offsets.tolist() == [0, 1, 2]


def test_names_are_safe_to_show() -> None:
    _, growth = begun(assigned(1, "<img src=x>\x1b[31m", 2 * MS))
    assert "\x1b" not in growth.now[0].key


def test_of_very_many_tasks_only_the_first_are_looked_through() -> None:
    """A worker that has none must not cost a look at all tasks of the others."""
    tasks = Open()
    tasks.give(Given(i, i, "a", i) for i in range(100_000))
    found = list(tasks.running({"a": 2, "b": 4}))
    assert [task.run for task in found] == [0, 1]
    assert len(tasks) == 100_000
