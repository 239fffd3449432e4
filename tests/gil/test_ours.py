"""What is stageprof's own is never said to be the user's: who held the GIL where ours was seen."""

from __future__ import annotations

import threading

import pytest
from distributed.comm import utils

from replay.handmade import ns
from stageprof_collectors.rules import gil_contention
from stageprof_runtime.event import HOLD, STOOD
from stageprof_runtime.gil.rows import label_of
from ui.observed import Observed, contended

# -- what the watch tells -------------------------------------------------------------------------

THREAD = ["Thread.run", threading.__file__, 982]
EXECUTING = ["_run.<locals>.timed", "/x/stageprof_runtime/probes/execution.py", 71]
LOADING = ["_loads.<locals>.timed", "<stageprof_runtime.probes.serialization>", 110]
SHIPPING = ["Shipper._run", "/x/stageprof_runtime/shipper.py", 90]
MINE = ["spin", "/home/u/etl.py", 24]


@pytest.fixture
def dask() -> list[object]:
    """A frame of distributed's."""
    return ["from_frames", utils.__file__, 80]


def test_it_is_the_innermost_of_the_users(dask: list[object]) -> None:
    assert label_of([THREAD, EXECUTING, MINE, dask]) == "/home/u/etl.py:24 spin"
    assert label_of([MINE, dask, LOADING]) == "/home/u/etl.py:24 spin"


def test_what_ours_stands_in_for_is_dasks(dask: list[object]) -> None:
    """Its call is timed; the work is that of who calls."""
    assert label_of([THREAD, dask, LOADING]) == f"{dask[1]}:80 from_frames"


def test_ours_around_a_task_is_not_what_dask_does(dask: list[object]) -> None:
    """Readers know it by its file, and say nothing of where that task was."""
    assert label_of([THREAD, dask, EXECUTING]).endswith(
        "probes/execution.py:71 _run.<locals>.timed"
    )


def test_a_thread_of_ours_is_ours() -> None:
    assert label_of([THREAD, SHIPPING]) == "/x/stageprof_runtime/shipper.py:90 Shipper._run"
    assert label_of([SHIPPING]) == "/x/stageprof_runtime/shipper.py:90 Shipper._run"


# -- what is made of it ---------------------------------------------------------------------------

OURS = "/x/site-packages/stageprof_runtime/probes/execution.py:71 _run.<locals>.timed"


def test_our_wrapper_around_a_task_is_not_who_held_it() -> None:
    """What is known of that task from elsewhere is said instead."""
    made = contended()
    made.stood(0, 200, 2000, OURS)
    frame = made.recording(2000).gil()
    mine = frame[frame["prefix"] == "spin"].set_index("function")
    assert mine["hold_s"].to_dict() == pytest.approx({"spin": 0.2, "": 1.0})
    made.look("spin", "spin", "/u/etl.py:24 spin", "python", 900)
    mine = made.recording(2000).gil().query("prefix == 'spin'")
    assert set(mine["function"]) == {"spin"}
    assert mine["hold_s"].sum() == pytest.approx(1.2)


def looped() -> Observed:
    """A worker with a task and a loop."""
    made = Observed(1)
    made.run(0, 0, 1000, cause=-1 - made.graph(0, 0, 0), key="spin-1")
    return made


def test_what_is_ours_outside_tasks_is_called_so() -> None:
    made = looped()
    made.held(0, 1000, 1500, thread=-1)
    made.stood(0, 1000, 1500, OURS.replace("execution", "serialization"), thread=-1)
    (row,) = made.recording(2000).gil().query("thread == 'event loop'").to_dict("records")
    assert (row["function"], row["file"], row["line"]) == ("stageprof itself", "", 0)


def test_threads_of_ours_are_called_ours_wherever_they_were_seen() -> None:
    made = looped()
    made.said(0, "thread", "77 stageprof-shipper-worker")
    rows = made._rows[made._workers[0]]
    rows += [
        (HOLD, ns(1000), ns(1500), 77, 0),
        (STOOD, ns(1000), ns(1200), 77, -1, "/l/json.py:9 f"),
    ]
    (row,) = (
        made.recording(2000).gil().query("thread == 'stageprof-shipper-worker'").to_dict("records")
    )
    assert (row["function"], row["file"], row["source"]) == ("stageprof itself", "", "")
    assert row["hold_s"] == pytest.approx(0.5)


def test_a_finding_never_blames_our_wrapper() -> None:
    made = contended()
    made.stood(0, 0, 2000, OURS)
    holder = gil_contention._holder(made.recording(2000), "spin")
    assert holder is not None
    assert "timed" not in holder.function
