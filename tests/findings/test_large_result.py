"""The rule large-result: A30, A31 (bytes and seconds of results), B9."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.dataframe as dd
import pandas as pd
import pytest

from findings.asking import asked, one, run
from findings.crews import Crewed
from replay.handmade import CLIENT, LANE, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.large_result import RULE
from stageprof_runtime.event import ARRIVE, BLOCK

MB = 1_000_000


def fetched(megabytes: int, gather: float, *, work: float = 500, kind: str = "int") -> Recording:
    """A task of so many ms whose result takes so many ms to fetch."""
    made = Crewed(1)
    graph = made.graph(0, 0, 0)
    made.made("field", 16)
    key: Any = ("field-1a2b", 0)
    made.run(0, 0, work, cause=-1 - graph, key=key, wanted=True)
    made.sized(megabytes * MB, kind)
    stop = work + gather
    rows = made._rows[CLIENT]
    rows.append((ARRIVE, ns(work), key))
    rows.append((BLOCK, ns(0), ns(stop), LANE, "_gather", ns(work), ns(work), ns(stop), key))
    made.loaded(work, stop, megabytes * MB)
    return made.recording(stop)


def test_a_large_result_is_found_with_its_bytes_and_its_line() -> None:
    """A30: 500 MB that take 500 of 1,000 ms."""
    found = one(RULE, fetched(500, 500))

    assert found.evidence["fetched_bytes"] == 500 * MB
    assert found.cost_s == pytest.approx(0.5)
    assert found.saving_s == pytest.approx((0.5, 0.5), abs=0.01)
    assert "`field` at etl.py:16, 500 MB" in found.headline


@pytest.mark.parametrize(
    ("megabytes", "gather", "fires"), [(500, 70, True), (500, 40, False), (5, 500, False)]
)
def test_it_fires_above_a_tenth_of_the_run_for_many_bytes(
    megabytes: int, gather: float, fires: bool
) -> None:
    """Bytes alone make no finding, and neither does waiting for a small result."""
    assert bool(asked(RULE, fetched(megabytes, gather))) is fires


def test_its_limit_can_be_set() -> None:
    assert asked(RULE, fetched(500, 500), share=0.6) == []


@pytest.mark.filterwarnings("ignore")
def test_the_fix_for_frames_writes_from_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = one(RULE, fetched(500, 500, kind="pandas.core.frame.DataFrame"))
    frame = dd.from_pandas(pd.DataFrame({"x": range(10)}), npartitions=2)
    monkeypatch.chdir(tmp_path)

    names = run(found, data=frame)

    assert names["answer"].loc["count", "x"] == 10
    assert len(list((tmp_path / "result").glob("*.parquet"))) == 2


def test_the_fix_for_calls_looks_at_it_in_a_task() -> None:
    import dask

    names = run(one(RULE, fetched(500, 500)), data=dask.delayed([1, 2, 3]))

    assert names["answer"] == 3
