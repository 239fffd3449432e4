"""Each column of a recording's tables, of a run in which all is known."""

from __future__ import annotations

import pytest

from replay.handmade import CLIENT, SCHEDULER, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import MARK, RUN, SAMPLE, SUBMIT


@pytest.fixture(scope="module")
def recording() -> Recording:
    """A graph of 5,000 bytes is handed over at 20 ms, and its one task runs from 100 to 200."""
    made = HandMade(1)
    made.span("expr", 5, 20)
    graph = made.graph(20, 30, 40)
    run = made.run(0, 100, 200, cause=-1 - graph, lead=(60, 80), finished=210, wanted=True)
    made.wait(20, 230, run, 215)
    (worker,) = made._workers
    sent, told = made.rows_of(CLIENT), made.rows_of(worker)
    sent[:] = [(*r[:4], 5_000, *r[5:]) if r[0] == SUBMIT else r for r in sent]
    told[:] = [(*r[:7], 40_000_000, *r[8:]) if r[0] == RUN else r for r in told]
    facts = {"worker.cpus": 8.0, "worker.cpus_usable": 3.0, "gil.contention": 0.25}
    told += [(SAMPLE, ns(0), name, value) for name, value in facts.items()]
    seen = (MARK, ns(0), "worker seen", f"{worker.name} 2 4000000000 alice")
    made.rows_of(SCHEDULER).append(seen)
    return made.recording(300)


def test_a_task(recording: Recording) -> None:
    """In a process that nobody watched its share of waiting is that of the process."""
    (task,) = recording.tasks().to_dict("records")
    assert task == {
        "key": "task-0",
        "prefix": "task",
        "layer": "task-0",
        "worker": "tcp://host:10",
        "thread": 1,
        "assigned_s": pytest.approx(0.06),
        "start_s": pytest.approx(0.1),
        "stop_s": pytest.approx(0.2),
        "duration_s": pytest.approx(0.1),
        "nbytes": 8,
        "cpu_s": pytest.approx(0.04),
        "gil_share": pytest.approx(0.25),
        "gil_hold_s": pytest.approx(float("nan"), nan_ok=True),
        "gil_wait_s": pytest.approx(float("nan"), nan_ok=True),
        "status": "memory",
        "run": 0,
    }


def test_a_computation(recording: Recording) -> None:
    """It began with its optimization, and has the wall time from there to its last task's end."""
    (found,) = recording.computations().to_dict("records")
    stages = {name: found.pop(name) for name in [*found] if name in STAGES}
    assert found == {
        "client": "Client-1",
        "file": "etl.py",
        "line": 1,
        "start_s": pytest.approx(0.005),
        "submitted_s": pytest.approx(0.02),
        "first_task_s": pytest.approx(0.095),
        "stop_s": pytest.approx(0.2),
        "duration_s": pytest.approx(0.195),
        "tasks": 1,
        "graph_tasks": 1,
        "wanted": 1,
        "graph_bytes": 5_000,
        "busy_s": pytest.approx(recording.stages()["busy_s"].sum()),
    }
    assert [*stages] == STAGES
    assert sum(stages.values()) == pytest.approx(0.195)
    assert (stages["optimization_s"], stages["outside_s"]) == pytest.approx((0.015, 0))
    assert (stages["execution_s"], stages["unexplained_s"]) == pytest.approx((0.12, 0))


STAGES = [
    f"{stage}_s"
    for stage in (
        "construction", "optimization", "serialization", "communication", "scheduling", "execution",
        "outside", "unexplained",
    )
]  # fmt: skip


def test_a_worker(recording: Recording) -> None:
    """Its processors are those that it may use, as its threads and its memory are."""
    (worker,) = recording.workers().drop(columns=["offset_s", "offset_error_s"]).to_dict("records")
    assert worker == {
        "worker": "tcp://host:10",
        "name": "alice",
        "host": "host",
        "pid": 10,
        "threads": 2,
        "cpus": 3,
        "memory_limit": 4_000_000_000,
        "instrumented": True,
        "reason": "",
        "left": False,
        "tasks": 1,
        "busy_s": pytest.approx(0.1),
        "batches_lost": 0,
    }


def test_the_critical_path(recording: Recording) -> None:
    """Whole, in order: what, in which process, and for which task."""
    assert recording.critical_path().drop(columns="seconds").values.tolist() == [
        [pytest.approx(start), pytest.approx(stop), *what]
        for start, stop, *what in (
            (0.000, 0.005, "outside", "", "client", ""),
            (0.005, 0.020, "optimization", "expr", "client", ""),
            (0.020, 0.030, "communication", "graph.send", "client", ""),
            (0.030, 0.060, "scheduling", "place", "scheduler", ""),
            (0.060, 0.080, "communication", "task.send", "scheduler", "task-0"),
            (0.080, 0.100, "execution", "wait.thread", "tcp://host:10", "task-0"),
            (0.100, 0.200, "execution", "compute", "tcp://host:10", "task-0"),
            (0.200, 0.210, "communication", "task.send", "tcp://host:10", "task-0"),
            (0.210, 0.215, "communication", "result.gather", "client", "task-0"),
            (0.215, 0.230, "communication", "result.gather", "client", ""),
            (0.230, 0.300, "outside", "", "client", ""),
        )
    ]
    path = recording.critical_path()
    assert path["seconds"].tolist() == pytest.approx(path["stop_s"] - path["start_s"])


def test_a_step(recording: Recording) -> None:
    """Waited for, worked at, or waited in by tasks: each has a column of its own."""
    steps = recording.steps().set_index(["step", "role"]).drop(columns=["stage", "share"])
    assert list(steps.columns) == ["wall_s", "busy_s", "waited_s", "events", "bytes"]
    expected = {
        ("compute", "worker"): (0.100, 0.100, 0, 1, 8),
        ("", "client"): (0.075, 0, 0, 0, 0),
        ("place", "scheduler"): (0.030, 0, 0, 0, 0),
        ("task.send", "scheduler"): (0.020, 0, 0.020, 0, 0),
        ("wait.thread", "worker"): (0.020, 0, 0.020, 0, 0),
        ("result.gather", "client"): (0.020, 0, 0, 0, 0),
        ("expr", "client"): (0.015, 0.015, 0, 1, 1),
        ("graph.send", "client"): (0.010, 0, 0, 0, 0),
        ("task.send", "worker"): (0.010, 0, 0, 0, 0),
        ("gil.wait", "worker"): (0, 0.025, 0, 0, 0),
    }
    found = {which: tuple(row) for which, row in zip(steps.index, steps.to_numpy(), strict=True)}
    assert found == {which: pytest.approx(row) for which, row in expected.items()}
