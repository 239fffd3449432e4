"""`stageprof.check` of operations on data frames: those that could be fused, and those that are."""

from __future__ import annotations

from typing import Any

import dask.dataframe as dd
import pandas as pd
import pytest
from dask.base import collections_to_expr

import stageprof


def part(number: int) -> pd.DataFrame:
    return pd.DataFrame({"a": [number, 2.0], "b": [number, 1]})


def total(parts: int) -> Any:
    frame = dd.from_map(part, range(parts), meta=part(0).head(0))
    frame["c"] = frame["a"] * 2 + frame["b"]
    return frame[frame["b"] > 2]["c"].sum()


def test_what_could_be_fused_is_found_and_its_partitions_are_not_too_many() -> None:
    [found] = stageprof.check(total(100))
    assert found.rule == "unfused-frame"
    assert found.evidence["fused_tasks"] == 100
    built = collections_to_expr([total(100)]).optimize().__dask_graph__()
    assert found.evidence["tasks"] == len(built) - 1
    assert "optimize()" in found.fix.code


def test_of_what_is_fused_only_the_tasks_that_are_left_are_counted() -> None:
    checked = stageprof.check(total(100).optimize())
    assert not checked.findings
    assert checked.found.tasks == pytest.approx(100, abs=3)


def test_too_many_partitions_are_found_beside_it() -> None:
    found = [f.rule for f in stageprof.check(total(3_000))]
    assert sorted(found) == ["large-graph", "unfused-frame"]
