"""The probe of groups that pandas gives one by one: how many, in which tasks, for which loop."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import dask
import numpy as np
import pandas as pd
import pytest

import stageprof
from clusters import local
from stageprof_collectors.profiles.looks import place
from stageprof_runtime.probes import groupby

GROUPS = 150
FRAME = pd.DataFrame({"key": np.arange(300) % GROUPS, "x": np.arange(300.0)})
#: The same by time: two rows a minute.
TIMES = pd.date_range("2026", periods=len(FRAME), freq="30s")


class Given(NamedTuple):
    """A row of GROUPED."""

    prefix: str
    file: str
    first: int
    last: int
    function: str
    groups: int
    rows: int


def given(prof: stageprof.profile) -> list[Given]:
    """What a recording says of it."""
    table, strings = prof.recording.store.table("grouped"), prof.recording.store.strings
    names = ("name", "label", "line", "count", "total")
    rows = zip(*(table[name].tolist() for name in names), strict=True)
    found = []
    for name, label, last, groups, count in rows:
        file, first, function = place(strings[label])
        found.append(Given(strings[name], file, first, last, function, groups, count))
    return found


def recorded(function: Callable[[pd.DataFrame], Any]) -> list[Given]:
    """Of a task that calls a function with a frame."""
    with stageprof.profile() as prof:
        dask.delayed(function)(FRAME).compute(scheduler="sync")
    return given(prof)


def spread(group: Any) -> Any:
    """A function of Python for one group."""
    return group.max() - group.min()


def looped(frame: pd.DataFrame) -> list[float]:
    """Some groups need less."""
    found = []
    for key, group in frame.groupby("key"):
        if key == 3:
            continue
        found.append(group["x"].sum())
    return found


def comprehended(frame: pd.DataFrame) -> list[float]:
    """The same in one expression."""
    return [
        group["x"].sum()
        for _, group in frame.groupby("key")
    ]  # fmt: skip


def of_a_list(frame: pd.DataFrame) -> list[float]:
    """With a list of one key keys are tuples."""
    found = []
    for (_,), group in frame.groupby(["key"]):
        found.append(group["x"].sum())
    return found


def of_times(frame: pd.DataFrame) -> list[float]:
    """Spans of time are groups."""
    found = []
    for _, group in frame.set_index(TIMES).resample("1min"):
        found.append(group["x"].sum())
    return found


def of_times_in_one(frame: pd.DataFrame) -> float:
    """The same in one expression."""
    spans = frame.set_index(TIMES).resample("1min")
    return sum(group["x"].sum() for _, group in spans)


@pytest.mark.parametrize(
    "function",
    [
        lambda frame: frame.groupby("key")["x"].apply(spread),
        lambda frame: frame.groupby("key")[["x"]].apply(spread),
        lambda frame: frame.groupby("key")["x"].agg(spread),
        lambda frame: frame.groupby("key")["x"].transform(spread),
        lambda frame: frame.groupby("key").filter(lambda group: len(group) > 1),
        lambda frame: frame.set_index(TIMES).resample("1min").apply(spread),
        lambda frame: frame.set_index(TIMES)["x"].resample("1min").transform(spread),
    ],
    ids=["column", "frame", "agg", "transform", "filter", "times", "of times"],
)
def test_groups_that_pandas_calls_a_function_for_are_counted(
    function: Callable[[pd.DataFrame], Any],
) -> None:
    (found,) = {(g.file, g.groups, g.rows) for g in recorded(function)}
    assert found == ("", GROUPS, len(FRAME))


@pytest.mark.parametrize(
    ("function", "first", "last"),
    [
        (looped, 3, 6),
        (comprehended, 2, 4),
        (of_a_list, 3, 4),
        (of_times, 3, 4),
        (of_times_in_one, 3, 3),
    ],
)
def test_a_loop_of_the_users_is_named_with_its_lines(
    function: Callable[[pd.DataFrame], Any], first: int, last: int
) -> None:
    """Of a comprehension its bracket counts, too."""
    (found,) = recorded(function)
    begins = inspect.getsourcelines(function)[1]
    assert found[1:5] == (__file__, begins + first, begins + last, function.__name__)
    assert found.groups == GROUPS


@pytest.mark.parametrize(
    "function",
    [
        lambda frame: frame.groupby("key")["x"].sum(),
        lambda frame: frame.groupby("key")["x"].transform("mean"),
        lambda frame: frame.iloc[:90].groupby("key")["x"].apply(spread),
    ],
    ids=["sum", "transform", "few groups"],
)
def test_what_is_done_for_all_groups_at_once_or_for_few_is_not_told(
    function: Callable[[pd.DataFrame], Any],
) -> None:
    assert recorded(function) == []


def test_outside_tasks_nothing_is_told() -> None:
    with stageprof.profile() as prof:
        FRAME.groupby("key")["x"].apply(spread)
    assert given(prof) == []


def test_a_function_that_fails_fails_as_without_us() -> None:
    def failing(group: pd.Series) -> float:
        raise ValueError(f"of {group.name}")

    with stageprof.profile() as prof, pytest.raises(ValueError, match="of 0"):
        dask.delayed(lambda frame: frame.groupby("key")["x"].apply(failing))(FRAME).compute(
            scheduler="sync"
        )
    assert given(prof)[0].groups == GROUPS


@pytest.mark.parametrize("function", [comprehended, of_times])
@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError, SystemExit])
def test_an_error_of_ours_is_nobodys(
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
    function: Callable[[pd.DataFrame], Any],
) -> None:
    hit = []

    def broken(*_: Any) -> Any:
        hit.append(error)
        raise error

    monkeypatch.setattr(groupby, "_loop", broken)
    with stageprof.profile() as prof:
        found = dask.delayed(function)(FRAME).compute(scheduler="sync")
    assert hit
    assert given(prof) == []
    assert found == function(FRAME)


@pytest.mark.smoke
def test_on_a_worker_each_task_tells() -> None:
    """Also where it is Dask that calls pandas; whatever a shuffle does before."""
    import dask.dataframe as dd

    with local(1) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = dd.from_pandas(FRAME, npartitions=1)
        with stageprof.profile() as prof:
            applied = frame.groupby("key")["x"].apply(_spread, meta=("x", "f8"))
            spreads = client.compute(applied).result()
    assert sorted(spreads) == [GROUPS] * GROUPS
    (found,) = given(prof)
    assert (found.file, found.groups, found.rows) == ("", GROUPS, len(FRAME))


#: As a function that is sent by value: workers cannot import this module.
_spread = eval("lambda group: group.max() - group.min()")
