"""Processes are told apart in the time line, and tasks that only the scheduler saw are tasks."""

from __future__ import annotations

import numpy as np

from stageprof_collectors.recording import Recording
from stageprof_runtime.stage import STEP
from stageprof_ui.columns.boxes import SUBROWS, Pile, Row
from stageprof_ui.columns.lines import THREAD, folded, lines
from stageprof_ui.columns.timeline import boxes, labels
from stageprof_ui.views.timeline import left_out
from ui.observed import Observed


def named(*names: str) -> Recording:
    """A worker of each name, on each of which two threads ran a task."""
    made = Observed(len(names), threads=2)
    graph = -1 - made.graph(0, 0, 0)
    for worker, name in enumerate(names):
        made.named(worker, name)
        for thread in (0, 1):
            made.run(worker, 10, 50, cause=graph, thread=thread)
        made.sent(worker, worker, 0, 5, 100)
    return made.recording(100)


def unseen(tasks: int, fetches: int = 0) -> Recording:
    """Tasks at the same time on a worker that was not instrumented, fetches on another."""
    made = Observed(2)
    graph = -1 - made.graph(0, 0, 0)
    for i in range(tasks):
        made.run(1, 10, 50, cause=graph, key=f"seen-{i}")
    for _ in range(fetches):
        made.sent(1, 0, 0, 5, 100)
    del made._rows[made._workers[1]]
    return made.recording(100)


def test_a_comma_in_a_workers_name_merges_no_processes() -> None:
    found = boxes(named("gpu,1", "gpu,2"))
    assert [line.label for line in folded(found)] == ["worker gpu,1", "worker gpu,2"]
    assert {line.parent for line in lines(found)} == {"worker gpu,1", "worker gpu,2"}


def test_a_worker_that_was_restarted_is_a_process_of_its_own() -> None:
    found = boxes(named("0", "0"))
    assert [(line.label, len(line.rows)) for line in folded(found)] == [
        ("worker 0", 2),
        ("worker 0 (2)", 2),
    ]
    labels = [line.label for line in lines(found)]
    assert len(set(labels)) == len(labels)
    assert "worker 0 (2), thread 2" in labels
    assert {line.parent for line in lines(found)} == {"worker 0", "worker 0 (2)"}


def test_no_name_can_be_that_of_another_process() -> None:
    recording = named("0", "0 (2)", "0")
    workers = [i for i, p in enumerate(recording.store.places) if p.role == "worker"]
    assert [labels(recording)[place] for place in workers] == [
        "worker 0",
        "worker 0 (2)",
        "worker 0 (3)",
    ]


def test_lines_of_a_run_that_goes_on_fold_as_their_labels_say() -> None:
    """They have no place yet; `browser/live.js` adds others to them by these labels."""
    pile, at = Pile(0, 10), np.zeros(0, np.int64)
    for label in ("worker gpu,1, thread 1", "worker gpu,1, thread 2", "worker gpu,2, thread 1"):
        pile.add(Row(label, -1, THREAD), at, at, 0)
    assert [(line.label, line.rows) for line in folded(pile.boxes())] == [
        ("worker gpu,1", (0, 1)),
        ("worker gpu,2", (2,)),
    ]


def test_tasks_that_only_the_scheduler_told_of_have_a_layer_and_a_key() -> None:
    recording = unseen(5)
    found = boxes(recording)
    tasks = found.step == STEP["compute"]
    shown = [i for i, row in enumerate(found.rows) if row.kind == THREAD]
    assert [found.rows[i].label for i in shown] == ["tcp://host:11 (not instrumented)"] * 5
    mine = np.concatenate([range(*found.offsets[i : i + 2]) for i in shown])
    assert tasks[mine].all()
    assert sorted(found.run[mine].tolist()) == [0, 1, 2, 3, 4]
    assert found.layers[found.layer[mine][0]] == recording.layers()["layer"].iloc[0] != ""


def test_coroutines_of_one_thread_are_whole_below_each_other() -> None:
    """Eight that sleep at once were one of a second, and seven of nothing."""
    made = Observed(1)
    graph = -1 - made.graph(0, 0, 0)
    for i in range(8):
        made.run(0, 10 + i, 50 + i, cause=graph)
    made.run(0, 60, 90, cause=graph)
    found = boxes(made.recording(100))
    tasks = found.run >= 0
    assert (found.length[tasks] * found.unit_ns).tolist() == [40e6, 30e6, *[40e6] * 7]
    threads = [row for row in found.rows if row.kind == THREAD]
    assert len(threads) == 8
    assert len({row.thread for row in threads}) == 1


def test_what_has_no_row_is_counted_by_what_it_is() -> None:
    found = boxes(unseen(SUBROWS + 4, SUBROWS + 1))
    assert found.left_out == {"transfer": 1, THREAD: 4}
    fetches, tasks = left_out(found.left_out)
    assert fetches.startswith("1 transfer overlapped")
    assert fetches.endswith("the table of transfers counts all.")
    assert tasks.startswith("4 tasks overlapped too many others")
    assert tasks.endswith("the table of layers counts all.")


def test_nothing_is_said_where_all_have_a_row() -> None:
    assert left_out(boxes(unseen(SUBROWS, SUBROWS)).left_out) == []
