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
from stageprof_collectors.findings.diagnosis import diagnose
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.idle_workers import RULE as IDLE
from stageprof_collectors.rules.large_result import RULE
from stageprof_runtime.event import ARRIVE, BLOCK

MB = 1_000_000


def fetched(
    megabytes: int, gather: float, *, work: float = 500, kind: str = "int", calls: int = 1
) -> Recording:
    """A task of so many ms whose result takes so many ms to fetch, by so many calls."""
    made = Crewed(1)
    graph = made.graph(0, 0, 0)
    made.made("field", 16)
    key: Any = ("field-1a2b", 0)
    made.run(0, 0, work, cause=-1 - graph, key=key, wanted=True)
    made.sized(megabytes * MB, kind)
    stop = work + gather
    rows = made._rows[CLIENT]
    rows.append((ARRIVE, ns(work), key))
    ends = [work + gather * i / calls for i in range(calls + 1)]
    for start, end in zip([0.0, *ends[1:]], ends[1:], strict=False):
        row = (BLOCK, ns(start), ns(end), LANE, "_gather", ns(work), ns(work), ns(end), key)
        rows.append(row)
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


def test_many_small_results_are_many_and_not_large() -> None:
    """200 kB each: results-one-by-one tells of them."""
    assert asked(RULE, fetched(20, 500, calls=10))
    assert not asked(RULE, fetched(20, 500, calls=100))


def test_what_comes_to_a_task_that_asked_is_not_brought_to_the_client() -> None:
    """As in a recursion with `worker_client`, whose last result alone is the client's."""
    made = Crewed(2)
    graph = made.graph(0, 0, 0)
    asks = made.run(0, 0, 200, cause=-1 - graph, wanted=True)
    made.sized(20 * MB)
    child = made.run(1, 10, 110, cause=-1 - made.launched(asks, 10), wanted=True)
    made.sized(20 * MB)
    made.waits_within(0, 10, 180, child, 110)
    made.wait(0, 210, asks, 200)
    made.loaded(200, 210, 20 * MB)

    assert asked(RULE, made.recording(210)) == []
    assert one(RULE, made.recording(210), share=0.01).cost_s == pytest.approx(0.01)


def joined() -> Recording:
    """Ten pieces of 50 MB from two workers, put together in 700 ms by one, and fetched in 200."""
    made = Crewed(2)
    graph = made.graph(0, 0, 0)
    parts = []
    for i in range(10):
        parts.append(made.run(i % 2, 0, 100, cause=-1 - graph, key=("field-1a2b", i), thread=i))
        made.sized(50 * MB, "pandas.core.frame.DataFrame")
    key: Any = ("repartitiontofewer-3c4d", 0)
    made.run(0, 100, 800, cause=parts[-1], needs=parts, key=key, lead=(100, 100), wanted=True)
    made.sized(500 * MB, "pandas.core.frame.DataFrame")
    rows = made._rows[CLIENT]
    rows.append((ARRIVE, ns(800), key))
    rows.append((BLOCK, ns(0), ns(1000), LANE, "_gather", ns(800), ns(800), ns(1000), key))
    made.loaded(800, 1000, 500 * MB)
    return made.recording(1000)


def test_that_threads_are_idle_while_it_is_put_together_is_no_finding_of_its_own() -> None:
    recording = joined()
    assert one(RULE, recording).evidence["put_together_s"] == pytest.approx(0.7)
    assert len(asked(IDLE, recording)) == 1
    assert [found.rule for found in diagnose(recording)] == [RULE.id]


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
