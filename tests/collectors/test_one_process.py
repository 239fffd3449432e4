"""Workers that are threads of the client's process: a task there uses that client."""

from __future__ import annotations

import numpy as np
import pytest

from replay.handmade import CLIENT, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.change import Change
from stageprof_runtime.event import ARRIVE, BLOCK, SPAN, SUBMIT
from stageprof_runtime.stage import STEP


def launching() -> Recording:
    """A task dumps a graph of its own for 200 ms, waits for its task's 300, and works 100 more."""
    made = HandMade(workers=2)
    place = made._workers[0]
    made._workers[0] = place._replace(pid=CLIENT.pid)
    made._rows[made._workers[0]] = made._rows.pop(place)
    outer = made.graph(0, 1, 2)
    task = made.run(0, 10, 630, cause=-1 - outer, wanted=True)
    inner = made.launched(task, 212)
    rows, thread = made.rows_of(CLIENT), 1
    rows.append((SPAN, STEP["graph.dump"], ns(10), ns(210), thread, "", 1))
    rows.append((SUBMIT, inner, ns(210), 1, 1, thread, "etl.py", 2))
    run = made.run(1, 220, 520, cause=-1 - inner, wanted=True)
    key = f"task-{run}"
    rows.append((ARRIVE, ns(525), key))
    waited = (ns(210), ns(530), thread, "_gather", *map(ns, (525, 526, 529)), key)
    rows.append((BLOCK, *waited))
    made.wait(2, 640, task, 632)
    return made.recording(650)


def test_what_it_does_and_waits_for_is_told_by_the_client() -> None:
    """All of it was the task's function."""
    recording = launching()

    wall = recording.steps().groupby("step")["wall_s"].sum()
    assert wall["graph.dump"] == pytest.approx(0.2)
    assert wall["compute"] == pytest.approx(0.1 + 0.3)
    assert recording.critical_path().groupby("key")["seconds"].sum()["task-1"] > 0.3


def test_it_is_busy_with_it_once() -> None:
    busy = launching().steps().groupby("step")["busy_s"].sum()
    assert busy["graph.dump"] == pytest.approx(0.2)
    assert busy["compute"] == pytest.approx(0.62 - 0.2 + 0.3)


def test_it_is_a_program_of_its_own_in_a_replay() -> None:
    """A shorter task within makes the one that waits for it shorter."""
    low, high = launching().replay.saving(Change(compute=np.array([1.0, 0.0])))
    assert low == pytest.approx(0.3, abs=0.02)
    assert high == pytest.approx(0.3, abs=0.02)
