"""Rule python-bound: A43, A44 (hot Python code, what to do), B15."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from findings.asking import asked, one, run
from findings.busy import FILE, Busy
from replay.handmade import ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.python_bound import RULE
from stageprof_runtime.event import MARK, NODE


def program(
    python: int = 60,
    calls: int = 20,
    others: int = 20,
    *,
    free: bool = False,
    type_: str = "int",
    called: str = "",
) -> Recording:
    """Tasks in a function of the user's, which was seen to call another one."""
    busy = Busy()
    for number, name in enumerate(("longest", called) if called else ("longest",)):
        busy.worker(NODE, number, number - 1, name, FILE, 19)
    if free:
        busy.worker(MARK, ns(1), "gil source", "ticker: this Python runs without a GIL")
    busy.tasks("longest", 10, 500, type_=type_)
    busy.look("longest", 19, "longest", "python", python)
    busy.look("longest", 21, "longest", "call", calls)
    busy.look("longest", 25, "longest", "library", others)
    return busy.recording()


def test_pure_python_is_named_with_its_hottest_line() -> None:
    """A43, A44: the user's function, its line, the share, and what to do."""
    found = one(RULE, program())

    assert "`longest` at etl.py:19 is pure Python for 80 %" in found.headline
    assert found.cost_s == pytest.approx(4.0, rel=0.01)
    assert found.cause == f"line:{FILE}:19"
    low, high = found.saving_s
    assert 5.0 * 0.6 * 0.72 < low < 5.0 * 0.6 * 0.76
    assert 5.0 * 0.98 * 0.84 < high < 5.0 * 0.98 * 0.88


@pytest.mark.parametrize("free", [False, True])
def test_threads_are_said_to_be_of_no_use_only_where_there_is_a_gil(free: bool) -> None:
    assert ("More threads do not help" in one(RULE, program(free=free)).fix.text) is not free


def test_calls_alone_are_not_taken_for_python() -> None:
    """A call may be NumPy's: looks at calls count only beside certain ones."""
    assert asked(RULE, program(python=0, calls=80)) == []


def test_calls_count_three_times_the_certain_looks_at_most() -> None:
    found = one(RULE, program(python=10, calls=90, others=0))

    assert found.evidence["share_of_tasks"] == pytest.approx(0.4)


def small(part: float, others: str = "dot") -> Recording:
    """A loop of small calls in tasks of 500 ms that had the GIL for a part of it."""
    busy = Busy()
    busy.tasks("rotate", 10, 500)
    busy.look("rotate", 9, "rotate", "small calls", 8)
    busy.look("rotate", 9, "rotate", "python", 3)
    busy.look("rotate", 9, "rotate", "call", 49)
    busy.look("rotate", 9, others, "library", 40)
    for i in range(10):
        busy.held(2 + 500 * i, 2 + 500 * (i + part))
    return busy.recording()


def test_small_calls_in_a_loop_are_named_with_their_line() -> None:
    """NumPy on three numbers runs C code for most of the time, and gives up the GIL in between."""
    found = one(RULE, small(0.9))

    assert "`rotate` at etl.py:9 makes small calls in a loop for 44 %" in found.headline
    assert "one call for all that the loop goes over" in found.fix.text
    assert found.fix.code == ""


def test_small_calls_save_at_most_what_the_function_had_the_gil() -> None:
    """How much of the C code each call needs for itself is not known."""
    assert one(RULE, small(0.9, "rotate")).saving_s[1] == pytest.approx(0.98 * 0.93 * 5, rel=0.02)
    assert one(RULE, small(0.6, "rotate")).saving_s[1] == pytest.approx(0.98 * 0.63 * 5, rel=0.02)
    assert one(RULE, small(0.9)).saving_s[1] < 0.98 * 0.7 * 5  # `dot` is another function


def test_more_of_the_users_own_python_is_no_small_calls() -> None:
    assert "is pure Python" in one(RULE, program()).headline


def held(part: float, python: int, calls: int) -> Recording:
    """Tasks of 500 ms each that had the GIL for a part of it."""
    busy = Busy()
    busy.tasks("longest", 10, 500)
    busy.look("longest", 19, "longest", "python", python)
    busy.look("longest", 21, "longest", "call", calls)
    for i in range(10):
        busy.held(2 + 500 * i, 2 + 500 * (i + part))
    return busy.recording()


def test_no_more_is_python_than_the_tasks_had_the_gil() -> None:
    """The calls went into C code that gave the GIL up: the watch knows, looks alone do not."""
    found = one(RULE, held(0.3, python=25, calls=75))

    assert found.evidence["share_of_tasks"] == pytest.approx(0.33, abs=0.001)
    assert found.evidence["gil_hold_s"] == pytest.approx(1.5, rel=0.01)
    assert found.saving_s[1] <= 5.0 * 0.33


def test_what_had_the_gil_all_the_time_is_as_it_was_looked_at() -> None:
    assert one(RULE, held(1.0, 25, 75)).evidence["share_of_tasks"] == pytest.approx(1.0)


def test_without_a_watch_nothing_is_known_of_holding() -> None:
    assert "gil_hold_s" not in one(RULE, program()).evidence


@pytest.mark.parametrize(("python", "fires"), [(19, False), (21, True)])
def test_it_takes_a_fifth_of_the_tasks_time(python: int, fires: bool) -> None:
    assert bool(asked(RULE, program(python, 0, 100 - python))) == fires


@pytest.mark.parametrize(("python", "fires"), [(9, False), (10, True)])
def test_it_takes_ten_looks(python: int, fires: bool) -> None:
    assert bool(asked(RULE, program(python, 0, 10))) == fires


def test_it_takes_two_hundredths_of_the_wall_time() -> None:
    busy = Busy()
    busy.tasks("big", 10, 500)
    busy.look("big", 3, "big", "library", 100)
    busy.tasks("small", 2, 30)
    busy.look("small", 19, "small", "python", 20)

    assert asked(RULE, busy.recording()) == []


def test_the_code_compiles_the_users_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """C35: what is printed runs; Numba itself is not installed everywhere."""
    numba = ModuleType("numba")
    compiled = lambda function: lambda *args: ("compiled", function(*args))  # noqa: E731
    numba.__dict__["njit"] = lambda *, nogil: compiled if nogil else None
    monkeypatch.setitem(sys.modules, "numba", numba)

    assert run(one(RULE, program()), longest=lambda n: n + 1)["longest"](3) == ("compiled", 4)


@pytest.mark.parametrize("type_", ["float", "numpy.float64", "numpy.ndarray"])
def test_numba_is_advised_where_tasks_make_numbers_or_arrays(type_: str) -> None:
    assert "njit(nogil=True)(longest)" in one(RULE, program(type_=type_)).fix.code


@pytest.mark.parametrize("type_", ["list", "dict", "str", "pandas.DataFrame", ""])
def test_no_code_is_printed_that_numba_refuses(type_: str) -> None:
    """Of `tokens(rec)`, which is given dicts, `njit(tokens)` raised a TypingError."""
    found = one(RULE, program(type_=type_))

    assert found.fix.code == ""
    assert "Numba" not in found.fix.text
    assert "more worker processes" in found.fix.text


@pytest.mark.parametrize("called", ["loads", "longest.<locals>.<genexpr>"])
def test_a_function_that_calls_others_is_not_compiled_alone(called: str) -> None:
    assert one(RULE, program(called=called)).fix.code == ""
    assert one(RULE, program(called="longest")).fix.code  # but one that calls itself


def test_what_tasks_are_given_counts_as_well() -> None:
    """They make numbers of texts."""
    busy = Busy()
    busy.tasks("read", 1, 10, type_="str")
    run = busy.made.run(
        0, 12, 1012, cause=busy._last, needs=[busy._last], key=f"longest-{1:032x}", thread=0
    )
    busy._last, busy._stop = run, 1012.0
    busy.look("longest", 19, "longest", "python", 20)

    assert one(RULE, busy.recording()).fix.code == ""
