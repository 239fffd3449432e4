"""Rule optimization-slow: A10, A12, A13 (where it really ran), A15."""

from __future__ import annotations

import pytest

from findings.asking import asked, one
from findings.crowded import CLIENT, FILE, Program, calls, ns, pieces
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules import graph_construction_slow, tiny_tasks
from stageprof_collectors.rules.optimization_slow import RULE
from stageprof_runtime.event import MARK
from stageprof_runtime.stage import STEP

ARRAY = "numpy.ndarray"


def program(ms: float = 500.0, step: str = "lowlevel", work: float = 99.0) -> Recording:
    """A second of work after so much optimizing of what line 20 made."""
    return crowded(ms, step, work).recording()


def crowded(ms: float = 500.0, step: str = "lowlevel", work: float = 99.0) -> Program:
    """The same, to be added to."""
    made = Program()
    made.made("mul", 20)
    made.client("construction/build", 90.0, f"{FILE}:20", seen=True)
    made.client("construction/build", 10.0, f"{FILE}:22", seen=True)
    made.client(f"optimization/{step}", ms)
    made.tasks(pieces(10, "mul"), work=work, type_=ARRAY)
    return made


@pytest.mark.parametrize("step", ["lowlevel", "expr"])
def test_its_seconds_place_and_line_are_named(step: str) -> None:
    """A10: apart from submission; A13: where it really ran."""
    found = one(RULE, program(step=step))

    assert "500 ms of 1.60 s" in found.headline
    assert found.evidence["ran_on"] == "client"
    assert found.evidence[f"{step}_s"] == pytest.approx(0.5)
    assert found.cost_s == pytest.approx(0.5)
    assert found.saving_s == pytest.approx((0.5, 0.5), abs=0.001)
    assert (found.where.file, found.where.line) == (FILE, 20)


@pytest.mark.parametrize(("ms", "fires"), [(590.0, True), (570.0, False), (0.0, False)])
def test_it_fires_from_a_twentieth_of_the_run(ms: float, fires: bool) -> None:
    """A15: rarely the main cause."""
    assert bool(asked(RULE, program(ms, work=1_100.0))) == fires


@pytest.mark.parametrize(("ms", "fires"), [(101.0, True), (99.0, False)])
def test_milliseconds_are_nothing_whatever_their_share(ms: float, fires: bool) -> None:
    """Any graph takes some, and the first of a process more."""
    assert bool(asked(RULE, program(ms, work=10.0))) == fires


@pytest.mark.parametrize(("operations", "fires"), [(24, False), (25, True), (960, True)])
def test_few_operations_are_no_reason_to_put_them_into_a_function(
    operations: int, fires: bool
) -> None:
    """Two graphs, each of which is gone through in two passes."""
    made = crowded()
    for step in ("expr", "lowlevel"):
        for _ in range(2):
            label = f"{STEP[step]} {operations} 1"
            made.rows[CLIENT].append((MARK, ns(1), "optimized", label))
    assert bool(asked(RULE, made.recording())) == fires


def test_operations_before_and_after_are_counted_for_each_pass() -> None:
    """A11: tasks before and after."""
    made = Program()
    made.client("optimization/lowlevel", 500.0)
    for counts in ("3 2", "960 4"):
        made.rows[CLIENT].append((MARK, ns(1), "optimized", f"{STEP['lowlevel']} {counts}"))
    made.tasks(pieces(10, "mul"), work=99.0, type_=ARRAY)
    evidence = one(RULE, made.recording()).evidence
    assert (evidence["lowlevel_operations"], evidence["lowlevel_operations_left"]) == (960, 4)


def test_line_that_is_slow_to_build_too_has_one_cause() -> None:
    recording = program()
    assert one(RULE, recording).cause == one(graph_construction_slow.RULE, recording).cause


def test_optimizing_many_tasks_has_the_cause_of_their_number() -> None:
    made = Program()
    made.made("checked", 21)
    made.client("construction/build", 100.0, f"{FILE}:21", seen=True)
    made.client("optimization/lowlevel", 300.0)
    made.tasks(calls(600), work=0.1)
    recording = made.recording()
    assert one(RULE, recording).cause == one(tiny_tasks.RULE, recording).cause


def layers(number: int, graphs: int) -> Recording:
    """A line made so many layers of a task each, in so many graphs."""
    made = Program()
    made.made("mul", 20)
    made.client("construction/build", 90.0, f"{FILE}:20", seen=True)
    made.client("optimization/lowlevel", 500.0)
    keys = [(f"mul-{layer:032x}", 0) for layer in range(number)]
    each = number // graphs
    for first in range(0, number, each):
        made.tasks(keys[first : first + each], work=10.0, lead=10.0, type_=ARRAY)
    return made.recording()


@pytest.mark.parametrize(("graphs", "saved"), [(1, 0.69), (20, 0.5)])
def test_layers_of_the_line_that_were_left_in_a_graph_become_one_in_the_prediction(
    graphs: int, saved: float
) -> None:
    """Those of other graphs have nothing to become one with, and are found and placed as before."""
    found = one(RULE, layers(20, graphs))
    assert found.evidence["layers_of_line"] == 20
    assert found.saving_s == pytest.approx((saved, saved), rel=0.02)
