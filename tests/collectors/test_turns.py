"""A worker's event loop that runs a task's coroutine is computing, whoever waits for it."""

from __future__ import annotations

import pytest

from replay.handmade import HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import TURN


def in_turn(held: bool) -> Recording:
    """Two coroutines of 200 ms, both ready at once: the end of the first is told after the second.

    What comes next is assigned when the scheduler has heard of the first.
    """
    made = HandMade(workers=1, threads=2)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 200, cause=-1 - graph, key=("first", 0), finished=400)
    second = made.run(0, 200, 400, cause=-1 - graph, key=("second", 0), lead=(0, 0), finished=400)
    last = made.run(0, 400, 500, cause=first, key=("last", 0), wanted=True)
    if held:
        turns = [(first, 0, 200), (second, 200, 400), (last, 400, 500)]
        rows = made.rows_of(made._workers[0])
        rows += [(TURN, run, ns(start), ns(stop), 0) for run, start, stop in turns]
    made.wait(0, 500, last, 500)
    return made.recording(500)


@pytest.mark.parametrize(("held", "computing"), [(True, 0.5), (False, 0.3)])
def test_who_waits_for_a_loop_with_a_coroutine_waits_for_that(held: bool, computing: float) -> None:
    """It was `task.send`: that the first had ended was not told."""
    recording = in_turn(held)
    steps = recording.steps().set_index("step")["wall_s"]
    assert steps["compute"] == pytest.approx(computing)
    path = recording.critical_path()
    seconds = path[path["step"] == "compute"].groupby("key")["seconds"].sum()
    assert ("('second', 0)" in seconds) is held
    assert recording.stages()["wall_s"].sum() == pytest.approx(0.5)
