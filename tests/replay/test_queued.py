"""Graphs that a program hands over faster than its scheduler takes them."""

from __future__ import annotations

import pytest

from replay.handmade import SCHEDULER, HandMade, ns
from stageprof_collectors.account.path import Step
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.replay import Change
from stageprof_runtime.event import SPAN
from stageprof_runtime.stage import STEP

#: What the scheduler needs for each graph, ms; the program hands one over every millisecond.
TAKES = 10.0


def submitted(graphs: int, *, pause: float = 0.0) -> Recording:
    """A graph of one task every ms, which queue; one more after `pause` ms; then a wait for all."""
    made = HandMade(workers=1, threads=1)
    taken, run = 0.0, -1
    for i in range(graphs):
        sent = float(i) if i < graphs - 1 else i + pause
        begun = max(taken, sent)
        taken = begun + TAKES
        _taken_in(made, begun, taken)
        number = made.graph(sent, begun, taken)
        run = made.run(0, taken, taken + 1, cause=-1 - number, wanted=True)
    made.wait(sent, taken + 1, run, taken + 1)
    return made.recording(taken + 1)


def _taken_in(made: HandMade, begun: float, taken: float) -> None:
    half = (begun + taken) / 2
    for step, start, stop in (("graph.load", begun, half), ("state", half, taken)):
        made._rows[SCHEDULER].append((SPAN, STEP[step], ns(start), ns(stop), 1, "", 0))


def halved(step: Step) -> float:
    """Half of all that the scheduler does for a graph."""
    return 0.5 if step.what.step in (STEP["graph.load"], STEP["state"]) else 1.0


def held(recording: Recording) -> int:
    """Steps of all ways of graphs."""
    return sum(len(op.after) for p in recording.replay._programs for op in p.ops)


def test_steps_that_are_held_grow_with_the_number_of_graphs_and_not_with_its_square() -> None:
    few, many = held(submitted(25)), held(submitted(100))
    assert few <= 5 * 25
    assert many <= 4.2 * few


@pytest.mark.parametrize("pause", [0.0, 500.0])
def test_graphs_that_queue_are_replayed_as_they_were(pause: float) -> None:
    recording = submitted(20, pause=pause)
    assert recording.replay.errors == (0, 0)
    assert recording.replay.saving(Change()) == (0, 0)


def test_scheduler_that_is_twice_as_fast_is_through_the_queue_in_half_the_time() -> None:
    low, high = submitted(20).replay.saving(Change(serial=halved))
    assert (low, high) == pytest.approx((0.1, 0.1))


def test_graph_that_came_to_an_empty_queue_gains_its_own_way_only() -> None:
    low, high = submitted(20, pause=500.0).replay.saving(Change(serial=halved))
    assert (low, high) == pytest.approx((0.005, 0.005))


def test_program_that_hands_over_at_once_has_to_queue_as_well() -> None:
    """A queue is no shorter for being longer at its beginning."""
    made = HandMade(workers=1)
    made.span("build", 0, 40)
    first = made.graph(40, 40, 140)
    made.span("build", 40, 60)
    second = made.graph(60, 140, 240)
    made.run(0, 140, 141, cause=-1 - first)
    run = made.run(0, 240, 241, cause=-1 - second, wanted=True)
    made.wait(60, 241, run, 241)
    recording = made.recording(241)
    assert recording.replay.errors == (0, 0)
    assert recording.replay.saving(Change(serial=without_the_second_building)) == (0, 0)


def without_the_second_building(step: Step) -> float:
    return float(step.what.step != STEP["build"] or step.start < ns(40))
