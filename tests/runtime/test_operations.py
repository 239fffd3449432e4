"""Operations before and after an optimization (A11): counted, without materializing anything."""

from __future__ import annotations

from typing import Any

import dask.array as da
import dask.dataframe as dd
import pandas as pd
from dask.base import collections_to_expr
from dask.delayed import delayed

import stageprof
from stageprof_runtime.operations import MOST, operations


def test_layers_of_a_graph_are_its_operations() -> None:
    x = da.ones(4, chunks=2) + 1
    assert operations(x.dask) == len(x.dask.layers)
    assert operations(collections_to_expr([x])) > len(x.dask.layers)


def test_expressions_are_counted_once_each() -> None:
    ddf = dd.from_pandas(pd.DataFrame({"x": [1, 2]}), npartitions=1)
    assert 1 < operations((ddf.x + ddf.x).expr) == operations((ddf.x + ddf.x + 0).expr) - 1


def test_large_graph_is_not_counted_to_its_end() -> None:
    ones = [delayed(int)(i) for i in range(MOST + 10)]
    assert operations(collections_to_expr(ones)) == MOST


class Hostile:
    """Raises whatever it is asked."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_other_objects_are_not_asked() -> None:
    assert operations(Hostile()) == 0
    assert operations([1, {}]) == 0


def test_recording_has_what_each_pass_made_of_how_many() -> None:
    """A11: tasks before and after, for each pass."""
    x = da.ones(4, chunks=2)
    for _ in range(20):
        x = x + 1
    with stageprof.profile() as region:
        assert x.sum().compute(scheduler="sync") == 84
    labels = [label for _, _, label in region.recording.timeline.marks("optimized")]
    assert any(int(before) > 20 > int(after) for _, before, after in map(str.split, labels))
