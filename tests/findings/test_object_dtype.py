"""Rule object-dtype: B4, B31, B38, B39 (object columns, tested values, exact dtypes)."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from findings.asking import asked, one, run
from findings.busy import Busy
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.object_dtype import RULE
from stageprof_runtime.columns import held


def program(*kinds: str, objects: int = 60, dtype: str = "object") -> Recording:
    busy = Busy()
    busy.tasks("best_page", 10, 500)
    busy.look("best_page", 28, "best_page", "objects", objects)
    busy.look("best_page", 30, "best_page", "library", 100 - objects)
    for i, kind in enumerate(kinds or ("string",)):
        busy.column("views_of", f"c{i}", dtype, kind, 6_000_000)
    busy.column("views_of", "seconds", "int64", "", 800_000)
    return busy.recording()


def test_columns_are_named_with_their_values_and_the_seconds_that_they_cost() -> None:
    """B4, B31: which columns, what they hold, what they cost."""
    found = one(RULE, program("string"))

    assert "1 column of dtype object (`c0`: string)" in found.headline
    assert "60 % of the time of `best_page` at etl.py:28" in found.headline
    assert found.cost_s == pytest.approx(3.0, rel=0.01)
    assert found.evidence["largest_column_share"] == pytest.approx(6 / 6.8)
    low, high = found.saving_s
    assert 5.0 * 0.4 * 0.5 < low < high < 5.0 * 0.95 * 0.7


@pytest.mark.parametrize(
    ("lines", "told"),
    [({"best_page-1": 12}, 12), ({"views_of-3": 9, "best_page-1": 12, "best_page-2": 13}, 9)],
)
def test_work_of_dasks_own_functions_is_told_at_the_line_that_asked_for_it(
    lines: dict[str, int], told: int
) -> None:
    """`df.city.str.upper()` is seen in no line of the user's; that of the column says it, too."""
    busy = Busy()
    for name, line in lines.items():
        busy.tasks(name.partition("-")[0], 10, 500, layer=name)
        busy.line(name, line)
    busy.look("best_page", 0, "", "objects", 60)
    busy.column("views_of", "city", "object", "string", 6_000_000)
    found = one(RULE, busy.recording())
    assert found.where.line == told
    assert f"at etl.py:{told}" in found.headline


def test_values_that_no_dtype_holds_get_no_advice() -> None:
    """B38: lists were made 50 times slower by a cast."""
    assert asked(RULE, program("")) == []


def test_beside_columns_that_no_dtype_holds_it_may_save_nothing() -> None:
    """`ddf.tags.str.len()` of lists takes the time, and `country` is a column of texts."""
    assert one(RULE, program("string", "")).saving_s[0] == 0
    assert one(RULE, program("string")).saving_s[0] > 0


def test_a_partition_in_which_all_are_missing_says_nothing_of_a_column() -> None:
    found = one(RULE, program("missing", "string"))
    assert "1 column" in found.headline
    assert found.saving_s[0] > 0
    busy = Busy()
    busy.tasks("best_page", 10, 500)
    busy.look("best_page", 28, "best_page", "objects", 50)
    for kind in ("", "string"):
        busy.column("views_of", "page", "object", kind, 6_000_000)
    assert asked(RULE, busy.recording()) == []  # and raised an IndexError


def test_where_values_are_missing_it_says_what_filters_do_with_them() -> None:
    """`df[df.city != "Rome"]` kept the rows with None, and would drop those with <NA>."""
    assert "`<NA>`" in one(RULE, program("string or missing")).fix.text
    assert "`<NA>`" not in one(RULE, program("string")).fix.text


def test_numbers_and_time_stamps_have_the_missing_values_that_they_had() -> None:
    assert "`<NA>`" not in one(RULE, program("float or missing", "datetime or missing")).fix.text


def test_a_column_that_is_mixed_in_one_frame_is_left_out() -> None:
    busy = Busy()
    busy.tasks("best_page", 10, 500)
    busy.look("best_page", 28, "best_page", "objects", 50)
    for kind in ("string", "integer"):
        busy.column("views_of", "page", "object", kind, 6_000_000)

    assert asked(RULE, busy.recording()) == []


def test_columns_with_a_dtype_are_no_finding() -> None:
    assert asked(RULE, program("string", dtype="string")) == []


@pytest.mark.parametrize(("looks", "fires"), [(4, False), (5, True)])
def test_it_takes_five_looks_at_objects(looks: int, fires: bool) -> None:
    assert bool(asked(RULE, program(objects=looks))) == fires


@pytest.mark.parametrize(("objects", "fires"), [(1, False), (3, True)])
def test_it_takes_two_hundredths_of_the_wall_time(objects: int, fires: bool) -> None:
    assert bool(asked(RULE, program(objects=objects), looks=1)) == fires


VALUES: dict[str, list[Any]] = {
    "string": ["a", "b"],
    "integer or missing": [1, None],
    "boolean or missing": [True, None],
    "date": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
    "datetime": [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)],  # noqa: DTZ001
    "decimal 2": [Decimal("1.25"), Decimal("2.5")],
    "float or missing": [1.5, None],
}


@pytest.mark.parametrize("kind", VALUES)
def test_the_code_converts_the_column_and_keeps_its_values(kind: str) -> None:
    """B39, C35: nullable integers and booleans, decimals, dates; the code runs."""
    frame = pd.DataFrame({"c0": pd.Series(VALUES[kind] * 600, dtype=object)})

    [column] = held(frame)
    after = run(one(RULE, program(column.kind)), frame=frame)["frame"]["c0"]

    assert column.kind == kind
    assert after.dtype != object
    same = [a == b for a, b in zip(after.dropna(), frame["c0"].dropna(), strict=True)]
    assert all(same)
    first = VALUES[kind][0]
    assert list((after == first).fillna(False)) == list(frame["c0"] == first)
    assert list(after.isin([first])) == list(frame["c0"].isin([first]))
    assert list(after.isna()) == list(frame["c0"].isna())


def test_decimals_have_room_for_products() -> None:
    """With 38 digits adding and multiplying them raised an error."""
    values = pd.Series([Decimal("1.25"), Decimal("2.5")] * 600, dtype=object)
    found = one(RULE, program("decimal 2"))
    after = run(found, frame=pd.DataFrame({"c0": values}))["frame"]["c0"]
    for made in (after + after, after * Decimal("1.19"), after * after, after * 3, after / 3):
        assert made.iloc[0] > 0
    assert "`sum`" in found.fix.text


def test_bytes_get_no_advice() -> None:
    """What Arrow holds of them has no `.str`, which is what is done with them."""
    assert asked(RULE, program("bytes")) == []


def test_columns_of_different_frames_are_converted_in_each_that_has_them() -> None:
    """One `astype` for all raised a KeyError."""
    busy = Busy()
    busy.tasks("best_page", 10, 500)
    busy.look("best_page", 28, "best_page", "objects", 60)
    busy.column("orders", "city", "object", "string", 6_000_000)
    busy.column("customers", "name", "object", "string", 6_000_000)
    found = one(RULE, busy.recording())
    for frame in (
        pd.DataFrame({"city": pd.Series(["a"], dtype=object), "n": [1]}),
        pd.DataFrame({"name": pd.Series(["a"], dtype=object)}),
        dd.from_pandas(pd.DataFrame({"name": pd.Series(["a"], dtype=object)}), npartitions=1),
    ):
        after = run(found, frame=frame)["frame"]
        assert "object" not in map(str, after.dtypes)


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, ("a",), object()])
def test_other_values_are_of_no_kind(value: object) -> None:
    frame = pd.DataFrame({"c0": pd.Series([value] * 1200, dtype=object)})

    assert [column.kind for column in held(frame)] == [""]


def test_mixed_values_are_of_no_kind() -> None:
    frame = pd.DataFrame({"c0": pd.Series(["a", 1] * 600, dtype=object)})

    assert [column.kind for column in held(frame)] == [""]


def test_nothing_of_the_users_is_called() -> None:
    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        def __hash__(self) -> int:
            raise AssertionError

        def __sizeof__(self) -> int:
            raise AssertionError

    values = np.empty(1200, dtype=object)
    for i in range(1200):
        values[i] = Hostile()
    frame = pd.DataFrame({"c0": pd.Series(values, dtype=object)})

    assert [column.kind for column in held(frame)] == [""]


def test_small_frames_and_classes_derived_from_a_frame_are_not_looked_at() -> None:
    class Mine(pd.DataFrame):
        pass

    assert list(held(pd.DataFrame({"a": ["x"] * 999}))) == []
    assert list(held(Mine({"a": ["x"] * 2000}))) == []
    assert list(held([1, 2])) == []
