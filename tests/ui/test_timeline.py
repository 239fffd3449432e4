"""The rows of the time line add up to what the account has, and are drawn where things ran."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.test_unended import killed
from collectors.test_untold import SILENT, untold
from replay.handmade import CLIENT, LANE, SCHEDULER, HandMade, ns
from stageprof_collectors.account.attempts import LOCAL
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import (
    ASSIGN,
    BLOCK,
    FINISH,
    GRAPH,
    MARK,
    RUN,
    SAMPLED,
    SPAN,
    SUBMIT,
    Place,
)
from stageprof_runtime.stage import STEP, STEPS
from stageprof_ui.columns.boxes import Boxes
from stageprof_ui.columns.timeline import boxes
from stageprof_ui.views.timeline import left_out
from ui.observed import Observed

#: A thread of a local scheduler's pool.
POOL = 8


def local(*threads: int) -> Recording:
    """A local scheduler's computation of 100 ms, with a task of 90 ms on each of some threads."""
    made = HandMade(0)
    rows = made.rows_of(CLIENT)
    rows.append((SUBMIT, LOCAL, ns(0), 1, 0, LANE, "etl.py", 1))
    rows.append((GRAPH, LOCAL, ns(1), ns(2), len(threads), 1, "local", -1))
    start = 5
    for run, thread in enumerate(threads, LOCAL):
        rows.append((ASSIGN, run, ns(start), "local", -1 - LOCAL, f"task-{run}"))
        rows.append((RUN, run, *map(ns, (start, start, start, start + 90)), thread, 0, "local"))
        rows.append((FINISH, run, ns(start + 90), 0, 8, "int"))
        if thread != LANE:
            rows.append((BLOCK, ns(start), ns(start + 90), LANE, "local", 0, 0, 0, ""))
        start += 92
    made.span("order", 1, 2)
    made.span("local.loop", 1, start)
    return made.recording(start)


def shown(found: Boxes, kind: str) -> dict[str, float]:
    """Seconds of each step in the rows of a kind."""
    sums: dict[str, float] = {}
    for i, row in enumerate(found.rows):
        for box in range(*found.offsets[i : i + 2].tolist()):
            if row.kind == kind:
                step = STEPS[int(found.step[box])][1]
                sums[step] = sums.get(step, 0.0) + int(found.length[box]) * found.unit_ns / 1e9
    return sums


def path_at(found: Boxes, role: str) -> dict[str, float]:
    """Seconds of each step of the critical path where a role's are drawn."""
    [row] = [i for i, row in enumerate(found.rows) if (row.kind, row.label) == ("path here", role)]
    pieces = range(*found.offsets[row : row + 2].tolist())
    steps = {STEPS[int(found.step[i])][1] for i in pieces}
    return {
        step: sum(int(found.length[i]) for i in pieces if STEPS[int(found.step[i])][1] == step)
        * found.unit_ns / 1e9
        for step in steps
    }  # fmt: skip


# -- local schedulers -----------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [(LANE,), (POOL,), (LANE, LANE), (POOL, POOL)])
def test_the_loop_of_a_local_scheduler_is_drawn_without_its_tasks(threads: tuple[int, ...]) -> None:
    """Its span is around all of them: the client's row was full of scheduling."""
    recording = local(*threads)
    busy = recording.steps().set_index("step")["busy_s"]
    client = shown(boxes(recording), "client")
    assert client == pytest.approx({"order": 0.001, "local.loop": busy["local.loop"]}, abs=1e-5)
    assert client["local.loop"] < 0.01


def test_what_a_thread_did_beside_its_tasks_is_in_one_row() -> None:
    """The user's own thread runs the tasks of the synchronous scheduler."""
    assert shown(boxes(local(LANE)), "thread") == pytest.approx({"compute": 0.09})


def test_what_only_the_sampler_saw_goes_under_what_is_known_exactly() -> None:
    made = HandMade()
    made.span("expr", 10, 20)
    made.rows_of(CLIENT).append((SPAN, STEP["build"], ns(15), ns(40), LANE, "", SAMPLED))
    client = shown(boxes(made.recording(100)), "client")
    assert client == pytest.approx({"expr": 0.01, "build": 0.02})


# -- where the critical path ran ------------------------------------------------------------------


def test_the_path_through_tasks_is_with_the_workers_though_nobody_told_of_them() -> None:
    found = boxes(untold())
    assert path_at(found, "worker")["compute"] == pytest.approx(0.4, abs=0.001)
    assert "compute" not in path_at(found, "client")


def test_the_path_through_a_task_that_goes_on_is_with_the_workers() -> None:
    found = boxes(killed(told=True).broken_off(5000))
    assert path_at(found, "worker")["compute"] == pytest.approx(4.983, abs=0.001)
    assert "compute" not in path_at(found, "client")


@pytest.mark.parametrize("thread", [LANE, POOL])
def test_the_path_through_a_local_schedulers_tasks_is_with_the_workers(thread: int) -> None:
    recording = local(thread)
    made = recording.critical_path().groupby("step")["seconds"].sum()
    found = boxes(recording)
    assert path_at(found, "worker") == pytest.approx({"compute": made["compute"]}, abs=1e-5)
    assert "compute" not in path_at(found, "client")


# -- tasks that no worker told of -----------------------------------------------------------------


def test_a_task_that_still_ran_when_the_program_was_killed_reaches_to_the_end() -> None:
    found = boxes(killed(told=True).broken_off(5000))
    [row] = [i for i, row in enumerate(found.rows) if "told by the scheduler" in row.label]
    first, last = found.offsets[row : row + 2].tolist()
    assert found.run[first:last].tolist() == [2]
    start, stop = found.seconds()
    assert (start[first], stop[first]) == pytest.approx((0.801, 5.0))


def test_a_worker_runs_no_more_tasks_than_it_has_threads() -> None:
    """Which of them it had begun nobody says: the oldest are shown, the others counted."""
    made = HandMade(2, threads=2)
    graph = -1 - made.graph(0, 0, 0)
    mine = [made.goes_on(0, 10 + i, cause=graph) for i in range(5)]
    other = made.goes_on(1, 20, cause=graph)
    found = boxes(made.broken_off(100))
    threads = np.repeat([row.kind == "thread" for row in found.rows], np.diff(found.offsets))
    assert sorted(found.run[threads].tolist()) == [*mine[:2], other]
    [said] = left_out(found.left_out)
    assert said.startswith("3 tasks had not ended, and no thread was left; ")


def test_a_task_of_a_local_scheduler_that_goes_on_is_none_of_a_worker_without_stageprof() -> None:
    made = HandMade(0)
    rows = made.rows_of(CLIENT)
    rows.append((GRAPH, LOCAL, ns(1), ns(2), 1, 1, "local", -1))
    rows.append((ASSIGN, LOCAL, ns(5), "local", -1 - LOCAL, "task-1"))
    labels = [row.label for row in boxes(made.broken_off(100)).rows]
    assert "local (told by the scheduler)" in labels


def test_tasks_of_workers_without_stageprof_are_in_rows_of_each() -> None:
    labels = [row.label for row in boxes(untold()).rows if row.kind == "thread"]
    assert labels == [f"{SILENT} (not instrumented)"] * 4


def test_workers_are_in_the_order_of_their_names_and_have_these_in_all_rows() -> None:
    """Though another came first, and only the scheduler tells of a task that goes on."""
    made = Observed(3)
    for worker, name in enumerate(("10", "2", "1")):
        made.named(worker, name)
    graph = -1 - made.graph(0, 0, 0)
    for worker in range(3):
        made.run(worker, 5, 8, cause=graph)
    made.goes_on(0, 20, cause=graph)
    labels = [row.label for row in boxes(made.broken_off(100)).rows if row.kind == "thread"]
    assert labels == [
        *(f"worker {name}, thread 1" for name in (1, 2, 10)),
        "worker 10 (told by the scheduler)",
    ]


# -- clocks ---------------------------------------------------------------------------------------


def test_a_process_whose_clock_is_not_known_makes_no_picture_of_days() -> None:
    """It told of one span, 300 days from now, and its clock was never compared with another."""
    made = HandMade(1)
    run = made.run(0, 10, 90, cause=-1 - made.graph(0, 1, 2), wanted=True)
    made.wait(0, 100, run, 95)
    far, day = Place("worker", "elsewhere", 99, "tcp://elsewhere:1", 1), 86_400_000
    made._rows[far] = [
        (SPAN, STEP["data.load"], ns(300 * day), ns(300 * day + 1), 3, "", 1),
    ]
    made.rows_of(SCHEDULER).append((MARK, ns(0), "worker seen", f"{far.name} 1 0 w2"))
    found = boxes(made.recording(100))
    assert found.unit_ns == 1_000
    assert "bytes" not in {row.kind for row in found.rows}
    [said] = left_out(found.left_out)
    assert said.startswith("1 clock could not be compared with the client's; ")
