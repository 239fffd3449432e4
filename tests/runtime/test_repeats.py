"""What plans have in common, told from what Dask's optimizers make of real collections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.base import collections_to_expr

from stageprof_runtime import repeats
from stageprof_runtime.event import PART
from stageprof_runtime.patch import Undo
from stageprof_runtime.probes import layers, optimization, plans

FRAME: Final = pd.DataFrame({"k": range(20), "x": 1.0, "y": 2.0, "z": 3.0})


def read(_part: int, columns: list[str] | None = None) -> pd.DataFrame:
    """A reader that can be told which columns are needed."""
    return FRAME[columns or ["k", "x", "y", "z"]]


class Told:
    """Probes with an emitter that keeps what it is told."""

    def __init__(self) -> None:
        self._emit = Mock()
        self.undo: list[Undo] = [p.install(self._emit) for p in (layers, optimization, plans)]

    def plan(self, collection: Any) -> list[tuple[Any, ...]]:
        """The rows of PART, without their times, that are told as a collection is optimized."""
        self._emit.reset_mock()
        collections_to_expr([collection]).optimize()
        rows = [call.args[1] for call in self._emit.row.call_args_list]
        return [row[2:] for row in rows if row[0] == PART]


@pytest.fixture
def told() -> Iterator[Told]:
    told = Told()
    yield told
    for undo in reversed(told.undo):
        undo()


@pytest.fixture
def frame(tmp_path: Path) -> Any:
    for i in range(2):
        FRAME.to_csv(tmp_path / f"{i}.csv", index=False)
    return dd.read_csv(tmp_path / "*.csv")


def test_a_first_plan_has_nothing_again(told: Told, frame: Any) -> None:
    assert told.plan(frame.x.sum()) == []


def test_the_same_reading_for_other_columns_is_told_of_both_plans(told: Told, frame: Any) -> None:
    told.plan(frame.x.sum())

    rows = [row for row in told.plan(frame.y.sum()) if row[0].startswith("read-csv")]

    (first, source, *_), (second, again, *_) = rows
    assert source == again == frame.expr.dependencies()[0]._name
    assert first != second
    assert {row[3] for row in rows} == {""}


def test_the_same_plan_again_is_seen_by_its_keys(told: Told, frame: Any) -> None:
    told.plan(frame.x.sum())

    assert told.plan(frame.x.sum()) == []


def test_a_shuffle_for_other_columns_is_told_with_those_that_it_has_in_common(told: Told) -> None:
    moved = dd.from_pandas(FRAME, npartitions=3).shuffle("k", shuffle_method="tasks")
    told.plan(moved.x.sum())

    rows = told.plan(moved.groupby("x").y.sum())

    shuffles = [row for row in rows if "Shuffle" in row[2]]
    assert [row[4:] for row in shuffles] == [(0, 2), (2, 3)]  # x and where it goes; besides y


def test_what_stands_above_a_filter_of_its_own_is_other_work(told: Told) -> None:
    """The filter is moved below the shuffle of one side, and below the merge."""
    frame = dd.from_map(read, [0, 1], meta=FRAME.iloc[:0])
    other = frame.rename(columns={"x": "a", "y": "b", "z": "c"})
    merged = frame.merge(other, on="k", shuffle_method="tasks", broadcast=False)
    told.plan(merged[merged.x > 0].y.sum())

    kinds = {row[2] for row in told.plan(merged[merged.z > 1].y.sum())}

    assert "TaskShuffle 2" in kinds
    assert not kinds & {"Filter 1", "TaskShuffle 1", "BlockwiseMerge 1"}


def test_data_that_are_there_are_not_made_again(told: Told) -> None:
    frame, array = dd.from_pandas(FRAME, npartitions=2), da.from_array(np.ones(8), chunks=2)
    told.plan(frame.x.sum())
    told.plan((array + 1).sum())

    assert told.plan(frame.y.sum()) == []
    assert told.plan((array + 2).sum()) == []


def test_what_is_persisted_is_not_made_again(told: Told) -> None:
    array = da.ones(8, chunks=2) + 1
    bag = db.from_sequence(range(8), npartitions=2).map(str)
    told.plan(array.sum())
    told.plan(bag.count())
    with dask.config.set(scheduler="sync"):
        held, kept = array.persist(), bag.persist()

    assert told.plan(held.mean()) == []
    assert told.plan(kept.frequencies()) == []


@pytest.mark.parametrize("random", [False, True])
def test_an_array_is_told_with_the_layers_it_may_be_fused_into(told: Told, *, random: bool) -> None:
    made = da.random.normal(size=(8, 8), chunks=4) if random else da.ones((8, 8), chunks=4)
    array = (made - 1) ** 2
    told.plan(array.sum())

    rows = told.plan(array.std())

    names = [(name.partition("-")[0], how) for name, label, _, how, *_ in rows]
    assert {label for _, label, *_ in rows} == {array.name}
    assert names[:2] == [("pow", ""), ("sum", "among others")]
    assert ("var", "among others") in names


def test_calls_of_delayed_keep_their_keys(told: Told) -> None:
    made = dask.delayed(len)([1, 2])
    told.plan(made + 1)

    assert told.plan(made + 2) == []


def test_a_bag_is_told_of_in_the_same_way(told: Told) -> None:
    bag = db.from_sequence(range(8), npartitions=2).map(str)
    told.plan(bag.count())

    assert {label for _, label, *_ in told.plan(bag.frequencies())} == {bag.name}


def test_a_third_plan_is_told_once(told: Told, frame: Any) -> None:
    """The first is in the rows of the second already."""
    told.plan(frame.x.sum())
    second, third = told.plan(frame.y.sum()), told.plan(frame.z.sum())

    assert len(second) == 2 * len(third)


def test_the_oldest_plans_are_forgotten(
    told: Told, frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "REMEMBERED", 8)
    told.plan(frame.x.sum())
    told.plan((da.ones(8, chunks=2) + 1).sum() + 1)
    array = (da.ones(8, chunks=2) + 2) * 3
    told.plan(array.sum())

    assert told.plan(array.std())
    assert told.plan(frame.y.sum()) == []


def test_no_more_is_told_of_a_plan_than_fits(
    told: Told, frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "TOLD", 1)
    told.plan(frame.x.sum())

    assert len(told.plan(frame.y.sum())) == 2
