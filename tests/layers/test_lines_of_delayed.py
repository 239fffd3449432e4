"""Each `delayed` call is of the line that makes it, however many make those of one function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import dask
import pytest
from dask.highlevelgraph import HighLevelGraph

from planted import identity
from stageprof_runtime import lines, made, process
from stageprof_runtime.probes import layers, waiting
from stageprof_runtime.ring import Ring
from truth import record

Program = Callable[[], list[Any]]

one = dask.delayed(identity)
pure = dask.delayed(identity, pure=True)
other = dask.delayed(max)


def by_line(program: Program) -> dict[int, int]:
    """Tasks by the line of this file, counted from the program's first."""
    recording = record(lambda: dask.compute(*program(), scheduler="sync"))
    table, first = recording.layers(), program.__code__.co_firstlineno
    table = table[(table["tasks"] > 0) & (table["file"] == __file__)]
    counts: Counter[int] = Counter()
    for line, tasks in zip(table["line"].tolist(), table["tasks"].tolist(), strict=True):
        counts[line - first] += tasks
    return dict(counts)


def in_turn() -> list[Any]:
    made = []
    for i in range(30):
        named = one(i)
        made.append(other(named, 3))
    return made


def of_one_function() -> list[Any]:
    made = []
    for i in range(30):
        made.append(one(i))
        if i % 3 == 0:
            made.append(one(-i))
    return made


def pure_and_not() -> list[Any]:
    made = []
    for i in range(30):
        made.append(one(i))
        made.append(pure(i))
    return made


def made_twice() -> list[Any]:
    made = [pure(i) for i in range(30)]
    again = [pure(i) for i in range(20)]
    return made + again


def made_again_then_others() -> list[Any]:
    made = [pure(i) for i in range(30)]
    again = [pure(i) for i in range(20, 60)]
    return made + again


def named_by_what_is_no_text() -> list[Any]:
    made = [one(i, dask_key_name=("chunk", i)) for i in range(30)]
    return [other(each, 3) for each in made]


def through_another() -> list[Any]:
    def through(i: int) -> Any:
        return one(i)

    return [(one, through)[i % 2](i) for i in range(30)]


def deeper_and_deeper() -> list[Any]:
    def deeper(i: int) -> list[Any]:
        made = one(i)
        return [made, *(deeper(i - 1) if i else [])]

    return deeper(29)


def with_keys() -> list[Any]:
    made = []
    for i in range(30):
        made.append(one(i, dask_key_name=f"my-own-{i}"))
        made.append(one(i, dask_key_name=f"my-other-{'0' * 36}{i:02}"))
    return made


@pytest.mark.parametrize(
    ("program", "truth"),
    [
        (in_turn, {3: 30, 4: 30}),
        (of_one_function, {3: 30, 5: 10}),
        (pure_and_not, {3: 30, 4: 30}),
        (made_twice, {1: 30}),
        (made_again_then_others, {1: 30, 2: 30}),
        (through_another, {2: 15, 4: 15}),
        (deeper_and_deeper, {2: 30}),
        (with_keys, {3: 30, 4: 30}),
    ],
)
def test_tasks_of_delayed_are_of_the_line_that_calls(
    program: Program, truth: dict[int, int]
) -> None:
    """The numbers are of the lines from the program's first."""
    assert by_line(program) == truth


def test_lines_of_a_loop_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """At each of its lines."""
    looked: list[str] = []
    look = lines.user_line

    def counted(frame: FrameType) -> tuple[str, int]:
        looked.append(frame.f_code.co_name)
        return look(frame)

    monkeypatch.setattr(layers, "user_line", counted)
    made: list[Any] = []
    record(lambda: made.extend(in_turn()))
    assert len(made) == 30
    assert len(looked) == 2


def test_layers_without_a_name_of_text_are_no_failures() -> None:
    """Numbers name what optimizers of Dask's make, and users give tuples as keys."""

    def program() -> None:
        for i in range(20):
            named: Any = i
            HighLevelGraph.from_collections(named, {f"inc-{i}": i})
        dask.compute(*named_by_what_is_no_text(), scheduler="sync")

    recording = record(program)
    assert recording.coverage()["dropped"] == {}
    assert recording.coverage()["disabled"] == []


def test_lines_are_forgotten_when_the_last_probe_that_notes_them_goes() -> None:
    """On a worker only futures of tasks have lines; the next recording must be told of them."""
    leave = process.join("worker", Ring(), [waiting.install])
    leave_too = process.join("client", Ring(), [layers.install, waiting.install])
    leave_too()
    assert made.known() is not None
    leave()
    assert made.known() is None
