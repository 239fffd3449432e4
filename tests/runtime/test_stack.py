"""What one look at a stack says of a task: A43, A44, B5."""

from __future__ import annotations

import datetime as dt
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import field, make_dataclass
from types import CodeType, SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
import pytest

from clusters import soon
from stageprof_runtime import stack
from stageprof_runtime.instruction import Instruction
from stageprof_runtime.looping import loops_of
from stageprof_runtime.origin import STANDARD, origin_of
from stageprof_runtime.stack import CALL, LIBRARY, OBJECTS, PYTHON, SMALL, Seen, judge

LOCALS = pytest.mark.skipif(
    sys.version_info < (3, 13), reason="locals of a running function are not read there"
)

FRAME = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40)})


class Look:
    """Called by the code that is looked at, from where it stands."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []

    def __call__(self, value: Any = 0) -> Any:
        self.seen.append(judge(sys._getframe(1), waited=False))
        return value

    @property
    def kinds(self) -> set[str]:
        return {seen.how for seen in self.seen}


def rows(look: Look) -> None:
    for _, row in FRAME.iterrows():
        look(row["a"])


def tuples(look: Look) -> list[Any]:
    return [look(row.a) for row in FRAME.itertuples()]


def one_or_the_other(look: Look) -> Any:
    """What `or` throws away, since Python 3.12 by an instruction of its own, is no call."""
    return [look(row.a) for _, row in enumerate(FRAME.itertuples(index=FRAME.empty or True))]


def generated(look: Look) -> Any:
    return sum(look(row.a) for _, row in enumerate(FRAME.itertuples()))


def by_row(look: Look) -> None:
    def score(row: Any) -> Any:
        return look(row["a"])

    FRAME.apply(score, axis=1)


def by_value(look: Look) -> None:
    FRAME["a"].map(lambda value: look(value) + 1)


def by_window(look: Look) -> None:
    FRAME["a"].rolling(3).apply(lambda window: look(window.sum()) + 1)


def vectorized(look: Look) -> None:
    np.vectorize(lambda value: look(value) + 1)(FRAME["a"].to_numpy())


def by_vector(look: Look) -> None:
    np.vectorize(lambda vector: look(vector.sum()) + 1, signature="(n)->()")(np.ones((4, 3)))


def along(look: Look) -> None:
    np.apply_along_axis(lambda vector: look(vector.sum()) + 1, 1, np.ones((4, 3)))


def by_column(look: Look) -> None:
    FRAME.apply(lambda column: look(column.sum()))


def plain(look: Look) -> None:
    for value in range(40):
        look(value)


def after(look: Look) -> None:
    total = 0
    for _, row in FRAME.iterrows():
        total += row["a"]
    look(total)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (rows, "iterrows"),
        (tuples, "itertuples"),
        (one_or_the_other, "itertuples"),
        (generated, "itertuples"),
        (by_row, "apply(axis=1)"),
        (by_value, "Series.map"),
        (by_window, "rolling.apply"),
        (vectorized, "np.vectorize"),
        (by_vector, "np.vectorize(signature)"),
        (along, "np.apply_along_axis"),
    ],
)
def test_loops_over_rows_and_elements_are_seen_from_within(
    function: Callable[[Look], object], kind: str
) -> None:
    look = Look()
    function(look)

    assert look.kinds == {kind}


@pytest.mark.parametrize("function", [by_column, plain, after])
def test_other_calls_are_no_loops_over_rows(function: Callable[[Look], object]) -> None:
    look = Look()
    function(look)

    assert look.kinds == {LIBRARY}


def test_a_loop_is_named_by_its_own_line() -> None:
    look = Look()
    rows(look)

    first = rows.__code__.co_firstlineno
    assert look.seen[0].label == f"{__file__}:{first + 1} rows"


def test_what_a_dataclass_does_is_of_the_line_that_makes_one() -> None:
    look = Look()
    made = make_dataclass("Point", [("x", Any, field(default_factory=look))])
    made()

    here = sys._getframe().f_code
    assert look.seen[0].label == f"{__file__}:{here.co_firstlineno + 3} {here.co_name}"


class Pair(NamedTuple):
    """Made by a function that is written for it."""

    x: int


@pytest.mark.parametrize(
    "code",
    [
        vars(make_dataclass("Point", ["x"]))["__init__"].__code__,
        cast("Any", Pair).__new__.__code__,
        plain.__code__.replace(co_filename="<attrs generated init shop.Point>"),
    ],
)
def test_methods_that_are_written_for_a_class_are_not_the_users(code: CodeType) -> None:
    assert origin_of(code).whose == STANDARD


# -- from another thread ----------------------------------------------------------------------


def watched(function: Callable[[], object], kind: str, *, waited: bool = False) -> set[str]:
    """The kinds seen while a thread calls a function over and over, until one of them is `kind`."""
    over, kinds = threading.Event(), set[str]()

    def work() -> None:
        while not over.is_set():
            function()

    def looked() -> bool:
        frame = sys._current_frames().get(thread.ident or 0)
        kinds.add(judge(frame, waited=waited).how)
        return kind in kinds

    thread = threading.Thread(target=work)
    thread.start()
    try:
        soon(looked)
    finally:
        over.set()
        thread.join()
    return kinds


@pytest.fixture
def quick() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


VECTOR = np.ones(3)


def small_calls() -> None:
    for _ in range(100):
        np.mean(VECTOR)


def no_loop() -> None:
    np.array2string(np.arange(50_000.0), threshold=10**6)


def spinning() -> None:
    number = 27
    while number != 1:
        number = 3 * number + 1 if number % 2 else number // 2


def one_by_one() -> None:
    for i in range(40):
        FRAME.loc[i, "a"]
        FRAME.iloc[i]["a"]


def assigned() -> None:
    frame = FRAME.copy()
    for name in ("a", "b"):
        frame.loc[:, name] = frame[name] * 2
        frame[name].sum()


DATES = pd.DataFrame({"day": [dt.date(2024, 1, 1 + i % 28) for i in range(50_000)], "n": 1})


def grouped() -> None:
    DATES.groupby("day")["n"].sum()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (spinning, PYTHON),
        (small_calls, SMALL),
        (one_by_one, "element access"),
        pytest.param(grouped, OBJECTS, marks=LOCALS),
    ],
)
def test_what_a_thread_does_is_seen(function: Callable[[], object], kind: str) -> None:
    assert kind in watched(function, kind)


@pytest.mark.usefixtures("quick")
def test_a_librarys_python_is_no_small_call_without_a_loop() -> None:
    """It is the library's own affair how it does the work of one call."""
    looked, thread = set[str](), threading.Thread(target=no_loop)
    thread.start()
    while thread.is_alive():
        looked.add(judge(sys._current_frames().get(thread.ident or 0), waited=True).how)
    thread.join()

    assert LIBRARY in looked
    assert SMALL not in looked


@pytest.mark.usefixtures("quick")
def test_whole_columns_are_not_single_elements() -> None:
    looked: set[str] = set()
    for _ in range(3):
        looked |= watched(assigned, LIBRARY)

    assert "element access" not in looked


def test_a_thread_that_waits_is_in_a_library_or_at_a_call() -> None:
    event = threading.Event()
    thread = threading.Thread(target=event.wait)
    thread.start()
    try:
        frame = sys._current_frames()[thread.ident or 0]
        assert judge(frame, waited=False).how == LIBRARY
        assert judge(frame, waited=True).how in (LIBRARY, CALL)
        del frame
    finally:
        event.set()
        thread.join()


def test_nothing_is_said_of_no_frame() -> None:
    assert judge(None, waited=True) == Seen("", LIBRARY, "")


# -- harm -------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="there locals are a view")
def test_locals_are_not_read_where_that_writes_into_the_frame() -> None:
    value = 3

    assert stack._locals(sys._getframe(), ("value",)) == {}
    assert value == 3


def test_a_modules_namespace_is_not_emptied() -> None:
    names: dict[str, Any] = {"stack": stack, "sys": sys, "frames": []}
    code = "frames.append(stack._locals(sys._getframe(0), ('stack',)))"
    exec(code, names)

    assert names["frames"] == [{}]
    assert names["stack"] is stack


@LOCALS
def test_reading_locals_keeps_nothing_alive() -> None:
    import weakref

    class Data:
        pass

    def inner(look: Callable[[], object]) -> bool:
        data = Data()
        known = weakref.ref(data)
        look()
        del data
        return known() is None

    frames: list[Any] = []

    def look() -> None:
        frames.append(type(stack._locals(sys._getframe(1), ("data",)).pop("data")).__name__)

    assert inner(look)
    assert frames == ["Data"]


# -- bytecode ---------------------------------------------------------------------------------


def test_a_comparison_that_jumps_backward_is_a_stop() -> None:
    code = spinning.__code__
    frame: Any = SimpleNamespace(f_code=code, f_lasti=-1)
    stops = [at for at in range(0, len(code.co_code), 2) if Instruction(frame, at).between]

    assert len(stops) >= 2
    assert Instruction(frame).between  # it has not begun
    assert loops_of(code) is loops_of(code)


def test_a_loop_after_rows_were_handed_to_a_call_is_a_loop_of_its_own() -> None:
    """`executemany` goes over the rows, and not the loop that comes next."""

    def work(frame: Any, cursor: Any, chunks: list[int]) -> None:
        cursor.executemany("insert", frame.itertuples())
        for chunk in chunks:
            print(chunk)  # noqa: T201

    def rows(frame: Any) -> None:
        for row in frame.itertuples():
            print(row)  # noqa: T201

    found = [[loop.rows for loop in loops_of(made.__code__).loops] for made in (work, rows)]
    assert found == [[""], ["itertuples"]]
