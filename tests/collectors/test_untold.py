"""Tasks of workers that tell nothing: their scheduler hears how long they took, and no more."""

from __future__ import annotations

import pytest

from findings.asking import asked
from replay.handmade import SCHEDULER, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import io_bound
from stageprof_collectors.storage.collector import Live
from stageprof_runtime.event import ASSIGN, FINISH, RUN, WANT
from stageprof_ui.columns import timeline

SILENT = "tcp://silent:1"


def untold(tasks: int = 16) -> Recording:
    """Tasks of 95 ms, four at once every 100, on a worker without stageprof."""
    made = HandMade(1)
    cause = -1 - made.graph(0, 0, 0)
    rows = made.rows_of(SCHEDULER)
    for run in range(tasks):
        start = 100 * (run // 4)
        rows.append((ASSIGN, run, ns(0), SILENT, cause, f"task-{run}"))
        rows.append((FINISH, run, ns(start + 100), 0, 8, "int"))
        rows.append(
            (RUN, run, *map(ns, (start + 5, start + 5, start + 5, start + 100)), 0, 0, SILENT)
        )
        rows.append((WANT, run, ns(start + 100), f"task-{run}"))
    end = 100 * (tasks // 4)
    made.wait(0, end, tasks - 1, end)
    return made.recording(end)


def test_they_ran_nowhere_that_was_seen() -> None:
    """They were the scheduler's, all on one thread of it that computed nothing."""
    recording = untold()
    assert set(recording.timeline.runs["wplace"]) == {-1}
    assert not recording.timeline.runs["seen"].any()
    busy = recording.steps().groupby("step")["busy_s"].sum()
    assert busy["compute"] == pytest.approx(16 * 0.095)
    assert recording.stages()["wall_s"].sum() == pytest.approx(recording.wall)
    assert not asked(io_bound.RULE, recording)
    layers = recording.layers().set_index("layer")
    assert layers["execution_s"]["task"] == pytest.approx(16 * 0.095)
    boxes = timeline.boxes(recording)
    lengths = boxes.length[boxes.run >= 0] * boxes.unit_ns
    assert lengths.min() == pytest.approx(95e6, rel=0.01)


def test_what_is_done_is_never_more_than_there_is() -> None:
    """Three results that were lost with their worker are made once more."""
    assert Live(counts={"scheduler": (100, 103, 103)}).tasks == (100, 100, 100)
    assert Live(counts={"scheduler": (100, 50, 40)}).tasks == (100, 50, 40)
