"""A cluster recorded from outside while something was under way: that is no time of nobody's."""

from __future__ import annotations

from typing import Any, Final

import pytest

from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.store import Store
from stageprof_collectors.summary import summarize
from stageprof_runtime.batch import pack
from stageprof_runtime.event import ASSIGN, FINISH, GRAPH, NO_CAUSE, RUN, WANT, Place

MS: Final = 1_000_000
BEGAN, ENDED = 1000 * MS, 2000 * MS
CLIENT = Place("client", "host", 1, "Client-1", 1)
SCHEDULER = Place("scheduler", "host", 2, "tcp://host:1", 1)
WORKER = Place("worker", "host", 3, "tcp://host:3", 1)
THREAD: Final = 7

Rows = list[tuple[Any, ...]]


def at(ms: float) -> int:
    return BEGAN + round(ms * MS)


def ended(run: int, ms: float, *, wanted: bool = True) -> Rows:
    """What a scheduler says of a task that ends."""
    rows: Rows = [(FINISH, run, at(ms), 0, 8, "int")]
    return [(WANT, run, at(ms), f"task-{run}"), *rows] if wanted else rows


def assigned(run: int, ms: float, cause: int = NO_CAUSE) -> Rows:
    return [(ASSIGN, run, at(ms), WORKER.name, cause, f"task-{run}")]


def ran(run: int, start: float, stop: float, came: float = -1) -> Rows:
    """What a worker says of a task; of most it did not see how they came."""
    came = came if came >= 0 else start
    times = (at(came), at(came), at(start), at(stop))
    return [(RUN, run, *times, THREAD, 0, WORKER.name)]


def recorded(scheduler: Rows, worker: Rows) -> Recording:
    """From 0 to 1000 ms; nobody has entered a region."""
    store = Store()
    for place, rows in ((CLIENT, []), (SCHEDULER, scheduler), (WORKER, worker)):
        store.add(pack(place, 0, BEGAN, []))
        store.add(pack(place, 1, ENDED, rows))
    recording = Recording(store)
    assert recording.stages()["wall_s"].sum() == pytest.approx(recording.wall)
    return recording


def test_tasks_of_a_graph_that_came_before_count_from_the_beginning() -> None:
    """One that ran, one that waited behind it, one assigned later: to the last that was wanted."""
    scheduler = [*ended(1, 200), *ended(2, 400), *assigned(3, 200, 1), *ended(3, 600)]
    recording = recorded(scheduler, [*ran(2, 200, 400), *ran(3, 400, 600, came=200)])
    stages = recording.stages()

    assert stages["wall_s"]["execution"] == pytest.approx(0.6)
    assert stages["wall_s"]["outside"] == pytest.approx(0.4)
    assert stages["busy_s"]["execution"] == pytest.approx(0.6)
    assert recording.tasks()["key"].tolist() == ["task-1", "task-2", "task-3"]
    assert recording.layers()["tasks"].sum() == 3


def test_where_nobody_wants_results_the_last_task_that_was_seen_ends_it() -> None:
    """Of tasks whose key nobody told the time is known all the same."""
    scheduler = [*ended(1, 300, wanted=False), *ended(2, 700, wanted=False)]
    recording = recorded(scheduler, ran(2, 300, 700))
    stages = recording.stages()

    assert stages["wall_s"]["execution"] == pytest.approx(0.7)
    assert stages["wall_s"]["outside"] == pytest.approx(0.3)
    assert stages["busy_s"]["execution"] == pytest.approx(0.7)


def test_a_graph_that_comes_later_begins_anew() -> None:
    """Between the last wanted result and its arrival the time is nobody's."""
    graph = (GRAPH, 0, at(500), at(500), 1, 1, "Client-2", -1)
    scheduler = [*ended(1, 200), graph, *assigned(2, 500, -1), *ended(2, 900)]
    stages = recorded(scheduler, ran(2, 500, 900)).stages()

    assert stages["wall_s"]["execution"] == pytest.approx(0.6)
    assert stages["wall_s"]["outside"] == pytest.approx(0.4)


@pytest.mark.parametrize("wanted", [True, False])
def test_what_goes_on_as_another_graph_comes_is_no_time_of_nobodys(*, wanted: bool) -> None:
    """Of two programs one computes all the while; it was `outside` from its first task's end on."""
    graphs = [(GRAPH, i, at(t), at(t), 2, 1, f"Client-{i}", -1) for i, t in enumerate((0, 500))]
    scheduler = [*graphs, *assigned(1, 0, -1), *ended(1, 50, wanted=wanted), *assigned(2, 50, 1)]
    scheduler += [*assigned(3, 500, -2), *ended(3, 600), *ended(2, 900)]
    recording = recorded(scheduler, [*ran(1, 0, 50), *ran(2, 50, 900)])
    stages = recording.stages()

    assert stages["wall_s"]["execution"] == pytest.approx(0.9)
    assert stages["wall_s"]["outside"] == pytest.approx(0.1)
    assert recording.critical_path().groupby("key")["seconds"].sum()["task-2"] == pytest.approx(
        0.85
    )


def test_between_tasks_of_a_graph_whose_result_is_wanted_later_it_is_the_schedulers() -> None:
    """At the instant at which another graph comes no worker has any of them."""
    graphs = [(GRAPH, i, at(t), at(t), 2, 1, f"Client-{i}", -1) for i, t in enumerate((0, 500))]
    scheduler = [*graphs, *assigned(1, 0, -1), *ended(1, 400, wanted=False), *assigned(2, 550, 1)]
    stages = recorded([*scheduler, *ended(2, 900)], [*ran(1, 0, 400), *ran(2, 550, 900)]).stages()

    assert stages["wall_s"]["execution"] == pytest.approx(0.75)
    assert stages["wall_s"]["scheduling"] == pytest.approx(0.15)


def test_a_task_that_goes_on_when_the_recording_ends_is_execution_until_then() -> None:
    scheduler = [*ended(1, 250), *assigned(2, 250, 1)]
    stages = recorded(scheduler, []).stages()
    assert stages["wall_s"]["execution"] == pytest.approx(1.0)


def test_work_of_a_worker_that_did_not_tell_is_not_said_to_be_the_clients() -> None:
    steps = summarize(recorded(ended(1, 200), [])).steps
    assert [step.where for step in steps] == ["a worker, mostly task"]


def test_a_cluster_that_does_nothing_is_outside() -> None:
    assert recorded([], []).stages()["wall_s"]["outside"] == pytest.approx(1.0)


def test_another_programs_graph_comes_in_a_replay_when_it_came() -> None:
    """It does not wait for what was under way then."""
    graphs = [(GRAPH, i, at(t), at(t), 2, 1, f"Client-{i}", -1) for i, t in enumerate((0, 500))]
    scheduler = [*graphs, *assigned(1, 0, -1), *ended(1, 900)]
    scheduler += [*assigned(2, 500, -2), *ended(2, 600)]
    other = (RUN, 2, *[at(500)] * 3, at(600), THREAD + 1, 0, WORKER.name)
    assert recorded(scheduler, [*ran(1, 0, 900), other]).replay.error < 0.01
