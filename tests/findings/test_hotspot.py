"""Where tasks spent their time, said where no rule knows what to do about it."""

from __future__ import annotations

import pytest

from findings.busy import Busy
from replay.handmade import CLIENT, HandMade, ns
from stageprof_collectors.findings.diagnosis import diagnose
from stageprof_collectors.findings.hotspot import hotspots
from stageprof_collectors.recording import Recording
from stageprof_collectors.summary import summarize
from stageprof_runtime.event import FLAME, NODE
from stageprof_runtime.stage import OUTSIDE


def loaded(loads: int, rest: int, *, entry: str = "predict") -> Recording:
    """Tasks that were seen so often in `load`, and in their own function."""
    made = Busy(2)
    made.tasks("predict", 40, 100)
    made.look("predict", 9, "load", "library", loads, entry=entry)
    made.look("predict", 12, "predict", "call", rest)
    return made.recording()


def advice(recording: Recording) -> str:
    (found,) = (f for f in diagnose(recording) if f.rule == "nothing-to-fix")
    return found.fix.text


def test_lines_are_named_with_their_part_of_the_tasks_time() -> None:
    load, predict = hotspots(loaded(30, 10))
    assert load[:4] == ("/home/u/etl.py", 9, "load", "predict")
    assert predict.line == 12
    assert (load.part, predict.part) == pytest.approx((0.75, 0.25))


@pytest.mark.parametrize(("loads", "said"), [(30, "etl.py:9"), (15, "predict")])
def test_the_summary_names_the_line_that_takes_most(loads: int, said: str) -> None:
    """Whatever the rules find beside it; else what its tasks are called."""
    steps = summarize(loaded(loads, 30 - loads)).steps
    (compute,) = (line for line in steps if line.step == "compute")
    assert compute.where.endswith(f", mostly {said}")


def test_looks_of_any_kind_of_work_at_a_line_are_one() -> None:
    made = Busy()
    made.tasks("predict", 40, 100)
    for how in ("library", "call"):
        made.look("predict", 9, "load", how, 15, entry="predict")
    assert [spot.part for spot in hotspots(made.recording())] == [1.0]


def test_functions_of_one_line_are_one_by_the_name_of_the_largest() -> None:
    made = Busy()
    made.tasks("predict", 40, 100)
    made.look("predict", 9, "load", "library", 25, entry="predict")
    made.look("predict", 9, "<lambda>", "library", 5, entry="predict")
    (found,) = hotspots(made.recording())
    assert found.function == "load"
    assert found.part == pytest.approx(1.0)


def test_a_small_part_and_few_looks_say_nothing() -> None:
    assert [spot.line for spot in hotspots(loaded(2, 38))] == [12]
    assert not hotspots(loaded(10, 9))


def test_a_function_that_tasks_call_may_be_kept_by_each_process() -> None:
    said = advice(loaded(30, 10))
    assert "75 % was at etl.py:9 (`load`), 25 % was at etl.py:12 (`predict`)" in said
    assert "If `load` gives the same each time" in said


def test_what_python_calls_is_not_cached_itself() -> None:
    """`functools.cache` on an `__init__` keeps nothing: each object is another `self`."""
    made = Busy(2)
    made.tasks("enrich", 40, 100)
    made.look("enrich", 6, "__init__", "library", 30, entry="enrich")
    said = advice(made.recording())
    assert "If `__init__` gives the same" not in said
    assert "in a function of its own with `functools.cache`" in said


@pytest.mark.parametrize(("loads", "rest"), [(30, 10), (10, 30)])
def test_tasks_that_wait_in_what_they_set_up_are_told_to_keep_it(loads: int, rest: int) -> None:
    """More threads wait for it side by side, and each of them still waits for what is there."""
    made = Busy(1)
    made.facts(threads=1, cpus=2)
    made.tasks("predict", 40, 100, cpu=0.01)
    made.look("predict", 9, "connect", "library", loads, entry="predict")
    made.look("predict", 12, "predict", "library", rest)
    (found,) = (f for f in diagnose(made.recording()) if f.rule == "io-bound")
    assert ("If `connect` gives the same each time" in found.fix.text) is (loads > rest)


@pytest.mark.parametrize("entry", ["predict", "parse"])
def test_python_that_tasks_call_first_is_told_to_be_kept(entry: str) -> None:
    made = Busy(1)
    made.tasks("predict", 40, 100)
    made.look("predict", 9, "parse", "python", 35, entry=entry)
    made.look("predict", 12, "predict", "library", 5)
    (found,) = (f for f in diagnose(made.recording()) if f.rule == "python-bound")
    assert ("If `parse` gives the same each time" in found.fix.text) is (entry == "predict")


def test_the_tasks_own_function_is_not_called_anew_for_nothing() -> None:
    assert "gives the same" not in advice(loaded(30, 10, entry="load"))


def test_what_has_no_name_of_its_own_is_told_by_its_line() -> None:
    made = Busy()
    made.tasks("predict", 40, 100)
    made.look("predict", 9, "<lambda>", "library", 30, entry="predict")
    assert "100 % was at etl.py:9." in advice(made.recording())


@pytest.mark.parametrize(("cpu", "room"), [(0.5, "processors (4 threads"), (0.05, "workers;")])
def test_fewer_threads_do_as_much_only_where_tasks_fill_the_processors(
    cpu: float, room: str
) -> None:
    """Tasks that sleep, or wait for a service, take a thread each and no processor."""
    made = Busy(4)
    made.facts(threads=4, cpus=2)
    made.tasks("predict", 8, 20, cpu=cpu)
    assert f"or more {room}" in advice(made.recording())


@pytest.mark.parametrize(("rest", "named"), [(900, True), (100, False)])
def test_lines_of_the_programs_own_are_named_where_it_is_beside_dask_for_long(
    rest: float, *, named: bool
) -> None:
    """A task of 400 ms, and 600 ms in `report`; 60 ms elsewhere are too little to tell."""
    made = HandMade(1)
    run = made.run(0, 0, 400, cause=-1 - made.graph(0, 0, 0), wanted=True)
    made.wait(0, 400, run, 400)
    rows = made.rows_of(CLIENT)
    rows.append((NODE, 0, -1, "main", "/home/u/etl.py", 40))
    rows.append((NODE, 1, 0, "report", "/home/u/etl.py", 18))
    for node, took in ((0, 60), (1, 600)):
        rows.append((FLAME, ns(900), OUTSIDE, "", "python", node, 20, took * 1_000_000))

    text = advice(made.recording(400 + rest))

    assert ("Your own code was at etl.py:18 for 600 ms." in text) is named
