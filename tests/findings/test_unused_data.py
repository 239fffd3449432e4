"""Rule unused-data: B13, B14, B34 (load less), B45 (arrays too)."""

from __future__ import annotations

import json
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed

import stageprof
from findings.asking import asked, one, run
from findings.busy import FILE, Busy
from stageprof_collectors.findings.loading import loadings
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.unused_data import RULE
from stageprof_runtime.loaded import Unused
from stageprof_runtime.plan import Plan, plan_of, unused

LAYER = "read-chunk-1a2b"


def program(how: str = "columns", used: int = 8, total: int = 80, *, inside: int = 0) -> Recording:
    """Ten tasks of 500 ms that read; `inside` of 100 looks saw the function that reads."""
    busy = Busy()
    busy.tasks("read-chunk", 10, 500, layer=LAYER)
    busy.unused(LAYER, how, '["a", "b"]', "read", used, total)
    busy.line(LAYER, 12)
    if inside:
        busy.look("read-chunk", 5, "column", "library", inside, entry="read")
        busy.look("read-chunk", 9, "score", "library", 100 - inside)
    return busy.recording()


def test_columns_that_are_read_for_nothing_are_named_with_their_line() -> None:
    """B13, B34: what is read and not used, and the seconds."""
    found = one(RULE, program())

    assert "90 % of the columns read by `read` at etl.py:12 is never used" in found.headline
    assert (found.where.file, found.where.line) == (FILE, 12)
    assert found.cost_s == pytest.approx(4.5, rel=0.01)
    assert list(found.saving_s) == pytest.approx([1.8, 4.5], rel=0.02)
    assert found.cause == f"layer:{LAYER}"


def test_only_the_time_in_the_reading_function_counts() -> None:
    assert one(RULE, program(inside=50)).cost_s == pytest.approx(2.25, rel=0.01)


@pytest.mark.parametrize(("used", "fires"), [(70, True), (71, False)])
def test_it_takes_three_tenths_that_are_not_used(used: int, fires: bool) -> None:
    assert bool(asked(RULE, program(used=used, total=100))) == fires


def test_parts_of_chunks_are_found_too() -> None:
    """B45: the same for arrays."""
    found = one(RULE, program("slice", 1, 100))

    assert "99 % of each chunk" in found.headline


def filtered(empty: int, nbytes: int = 1_000_000) -> Recording:
    busy = Busy()
    busy.tasks("read-chunk", 10 - empty, 500, layer=LAYER, nbytes=nbytes)
    busy.tasks("read-chunk", empty, 500, layer=LAYER, nbytes=900)
    busy.unused(LAYER, "filter", "", "read", 0, 0)
    return busy.recording()


def test_partitions_in_which_no_row_passes_are_counted() -> None:
    found = one(RULE, filtered(8))

    assert found.headline.startswith("8 of 10 partitions read by `read`")
    assert list(found.saving_s) == pytest.approx([3.6, 4.0], rel=0.02)


def test_small_results_of_all_tasks_say_nothing() -> None:
    assert asked(RULE, filtered(8, nbytes=2_000)) == []


def test_a_plan_without_waste_is_not_asked() -> None:
    busy = Busy()
    busy.tasks("read-chunk", 10, 500, layer=LAYER)

    assert asked(RULE, busy.recording()) == []


# -- the code ---------------------------------------------------------------------------------


def read(item: int, columns: list[str] | None = None) -> pd.DataFrame:
    frame = pd.DataFrame({"a": [item], "b": [2.0], "c": [3.0]})
    return frame if columns is None else frame[columns]


def test_the_code_reads_the_columns_only() -> None:
    """C35: what is printed runs."""
    frame = run(one(RULE, program()), read=read, inputs=[1, 2])["frame"]

    assert list(frame.columns) == ["a", "b"]
    assert list(unused(plan_of(frame[["a", "b"]].expr.optimize()))) == []


def test_all_columns_are_printed_whatever_their_number_and_names() -> None:
    """Else the code would read less than the program uses."""
    names = [f"column, {i}" for i in range(40)]
    busy = Busy()
    busy.tasks("read-chunk", 10, 500, layer=LAYER)
    busy.unused(LAYER, "columns", json.dumps(names), "read", 8, 80)
    given: dict[str, Any] = {}

    def reading(item: int, columns: list[str] | None = None) -> pd.DataFrame:
        given["columns"] = columns
        return pd.DataFrame({name: [item] for name in columns or names})

    run(one(RULE, busy.recording()), read=reading, inputs=[1])["frame"].compute(scheduler="sync")
    assert given["columns"] == names


def test_of_columns_that_are_not_known_none_is_printed() -> None:
    busy = Busy()
    busy.tasks("read-chunk", 10, 500, layer=LAYER)
    busy.unused(LAYER, "columns", "", "read", 8, 80)
    found = one(RULE, busy.recording())
    assert "columns=needed)" in found.fix.code
    assert "some columns" in found.fix.text


def test_the_code_leaves_inputs_out() -> None:
    names = run(one(RULE, filtered(8)), read=read, inputs=[1, 2])

    assert names["frame"].npartitions == 2


def test_the_code_slices_where_it_loads() -> None:
    x = run(one(RULE, program("slice", 1, 100)), source=np.ones((4, 4)))["x"]

    assert x[:, 0].sum().compute() == 4


# -- what the plan says -----------------------------------------------------------------------


def whole(item: int) -> pd.DataFrame:
    return pd.DataFrame({"a": [item], "b": [2.0], "c": ["text"]})


def plan(collection: Any) -> list[Unused]:
    return list(unused(plan_of(collection.expr.optimize(fuse=True))))


def test_a_projection_right_above_a_reader_is_seen() -> None:
    frame = dd.from_map(whole, [1, 2], meta=whole(0).astype({"c": "object"}))

    [row] = plan(frame["a"].sum())

    assert (row.how, row.label, row.variable) == ("columns", '["a"]', "whole")
    assert (row.used, row.total) == (8, 56)


def test_what_a_fused_operation_needs_reads_in_tasks_of_its_own() -> None:
    """Dask does not fuse `from_delayed`: its tasks are not those of what was fused above it."""
    made = dd.from_delayed([delayed(whole)(i) for i in (1, 2)], meta=whole(0))
    total = made[["a"]].sum()

    [row] = plan(total)

    assert row.name.startswith("fromdelayed")
    assert row.variable == "whole"
    assert row.name in {key[0] for key in total.optimize().dask if isinstance(key, tuple)}


def test_of_delayed_calls_the_time_counts_in_which_they_read() -> None:
    """What Dask makes of them for a data frame only passes on what they gave."""
    made = dd.from_delayed([delayed(whole)(i) for i in range(3)], meta=whole(0))
    with dask.config.set(scheduler="sync"), stageprof.profile(gil=False) as prof:
        made["a"].sum().compute()

    [loading] = loadings(prof.recording)
    assert prof.recording.prefixes[loading.rows].tolist() == ["whole"] * 3
    assert loading.by == "whole"


def test_what_was_fused_twice_runs_as_the_last_of_both() -> None:
    chosen = dd.from_map(whole, [1, 2], meta=whole(0))["a"].optimize()
    total = (chosen + 1).optimize().sum()

    [row] = plan(total)

    assert row.name in {key[0] for key in total.optimize().dask if isinstance(key, tuple)}


def test_columns_that_are_too_many_to_be_told_are_not_told_in_part() -> None:
    names = [f"a column with a long name {i}" for i in range(1000)]
    wide = pd.DataFrame({name: [0.0] for name in [*names, "other"]})
    frame = dd.from_map(lambda _: wide, [1, 2], meta=wide)

    [row] = plan(frame[names].sum())

    assert (row.how, row.label) == ("columns", "")


def test_of_a_plan_that_is_cut_no_column_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not looked at uses the others."""
    frame = dd.from_map(whole, [1, 2], meta=whole(0).astype({"c": "object"}))
    counts = _together([frame[name].count() for name in "ab"])
    monkeypatch.setattr("stageprof_runtime.plan.MOST", len(plan_of(counts).nodes) - 2)

    assert list(unused(plan_of(counts))) == []


def test_a_filter_above_a_reader_is_seen() -> None:
    frame = dd.from_map(whole, [1, 2], meta=whole(0))

    assert "filter" in {row.how for row in plan(frame[frame["b"] > 3])}


def test_a_reader_that_is_told_the_columns_wastes_nothing() -> None:
    """B14: the optimizer has done it."""
    frame = dd.from_map(read, [1, 2], meta=read(0))

    assert plan(frame["a"].sum()) == []


def test_a_frame_that_is_used_whole_wastes_nothing() -> None:
    frame = dd.from_map(whole, [1, 2], meta=whole(0))

    assert plan(frame.map_partitions(len)) == []


def test_a_slice_of_loaded_chunks_is_seen() -> None:
    loaded = da.ones((100, 100), chunks=(10, 100)).map_blocks(np.sqrt)

    [row] = _of_array(loaded[:, 0])

    assert (row.how, row.used, row.total) == ("slice", 100, 10_000)


@pytest.mark.parametrize(
    ("index", "used", "total"),
    [
        (slice(-10, None), 10, 10),
        (slice(None, 10), 10, 365),
        (slice(360, 370), 10, 375),
        ([1, 2, 370], 3, 375),
        (5, 1, 365),
    ],
)
def test_chunks_that_are_loaded_for_a_slice_count_by_their_own_sizes(
    index: Any, used: int, total: int
) -> None:
    loaded = da.ones(375, chunks=365).map_blocks(np.sqrt)

    found = [(row.used, row.total) for row in _of_array(loaded[index])]

    assert found == ([(used, total)] if used < total else [])


class Noting:
    """An array in a file, that notes what is read of it."""

    shape, ndim, dtype = (100, 100), 2, np.dtype("f8")

    def __init__(self) -> None:
        self.read: list[Any] = []

    def __getitem__(self, index: Any) -> Any:
        self.read.append(index)
        return np.ones(self.shape)[index]


@pytest.mark.parametrize(
    ("index", "fancy"),
    [
        ((slice(None), [3, 9]), True),
        ((slice(None), slice(None, None, -10)), True),
        ((None, slice(None), 3), True),
        ((slice(None), 3), False),
    ],
)
def test_what_is_not_sliced_where_it_is_loaded_is_wasted(index: Any, fancy: bool) -> None:
    source = Noting()
    sliced = da.from_array(source, chunks=(10, 100), fancy=fancy)[index]

    [row] = _of_array(sliced)
    source.read.clear()
    sliced.compute(scheduler="sync")
    assert row.total == sum(source[part].size for part in source.read.copy())


@pytest.mark.parametrize("lock", [False, True])
def test_of_what_is_sliced_where_it_is_loaded_nothing_is_wasted(lock: bool) -> None:
    source = Noting()
    sliced = da.from_array(source, chunks=(10, 100), lock=lock)[:, 3].sum()

    assert _of_array(sliced) == []
    source.read.clear()
    sliced.compute(scheduler="sync")
    assert sorted(rows.start for rows, _ in source.read) == list(range(0, 100, 10))
    assert {column for _, column in source.read} == {3}


def test_chunks_that_are_not_needed_are_not_loaded() -> None:
    loaded = da.ones((100, 100), chunks=(10, 100)).map_blocks(np.sqrt)

    assert _of_array(loaded[:10]) == []


def _together(collections: list[Any]) -> Any:
    from dask.base import collections_to_expr

    return collections_to_expr(collections).optimize()


def _of_array(array: Any) -> list[Unused]:
    return list(unused(plan_of(_together([array]))))


def test_a_list_that_holds_itself_is_gone_through_once() -> None:
    """Dask takes it as any other."""
    own: list[Any] = []
    own.append(own)
    frame = dd.from_map(whole, [1, 2], meta=whole(0))

    assert plan(frame.map_partitions(lambda part, _: part, own, meta=whole(0))) == []


def test_what_is_fused_with_itself_is_gone_through_once() -> None:
    """No plan of Dask's has that; a class of somebody else's may."""

    class Fused:
        _parameters = ("exprs",)

        def __init__(self) -> None:
            self.operands = [[self]]

    assert len(plan_of(Fused()).nodes) == 1


def test_a_plan_of_many_readers_is_gone_through_once() -> None:
    """`dd.concat([dd.read_csv(f) for f in files])`: it took a second for a thousand files."""
    looked: list[object] = []

    class FromMap:
        @property
        def operands(self) -> list[object]:
            looked.append(self)
            return [abs]

    readers = [FromMap() for _ in range(200)]
    assert list(unused(Plan({id(r): r for r in readers}, {}, {}))) == []
    assert len(looked) <= 5 * len(readers)
