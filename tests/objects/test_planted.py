"""Planted objects are found, with the bytes, the name and the line that they have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

import stageprof
from objects import programs
from objects.programs import Planted, Program

#: On a busy machine an object may seem slow to pickle.
pytestmark = pytest.mark.flaky(reruns=1)


def objects_of(program: Program, client: Client, log: Path) -> pd.DataFrame:
    """What is told of the objects in a program's graphs."""
    with stageprof.profile() as prof:
        program(client, str(log))
    coverage = prof.recording.coverage()
    assert coverage["disabled"] == []
    assert coverage["dropped"] == {}
    return prof.recording.objects()


@pytest.mark.parametrize("case", programs.cases, ids=lambda case: case.program.__name__)
def test_a_planted_object_is_named(case: Planted, client: Client, tmp_path: Path) -> None:
    """Exactly one object, by its variable and the line that assigned it."""
    found = objects_of(case.program, client, tmp_path / "log")
    assert len(found) == 1, found.T.to_string()
    row: Any = found.iloc[0]
    expected = (case.variable, programs.__file__, case.line, case.type)
    assert (row["variable"], row["file"], row["line"], row["type"]) == expected, row
    if case.nbytes:
        assert row["nbytes"] == case.nbytes, row
    assert row["tasks"] >= 1, row
    assert row["used_file"] == programs.__file__, row


@pytest.mark.parametrize("program", programs.clean, ids=lambda program: program.__name__)
def test_a_clean_program_has_none(program: Program, client: Client, tmp_path: Path) -> None:
    """Nothing is told of."""
    found = objects_of(program, client, tmp_path / "log")
    assert found.empty, found.T.to_string()


def test_what_is_wrapped_for_map_partitions_is_a_task_of_its_own(client: Client) -> None:
    """As `embedded-object` has it wrapped: it is in no pieces, and no other task holds it."""
    frame = pd.DataFrame({"x": np.arange(40_000.0)})
    numbers = dd.from_pandas(pd.DataFrame({"x": np.arange(100.0)}), npartitions=5)
    with stageprof.profile() as prof:
        wrapped = dask.delayed(frame, traverse=False)
        out = numbers.map_partitions(_scaled, wrapped, meta={"x": float})
        assert out.x.sum().compute() == 4950.0
    row: Any = prof.recording.objects().iloc[0]
    assert (row["variable"], row["how"], row["tasks"]) == ("frame", "data of the graph", 1), row
    assert row["sent_bytes"] < 2 * row["nbytes"]


def _scaled(piece: pd.DataFrame, by: pd.DataFrame) -> pd.DataFrame:
    return piece * (len(by) / 40_000)
