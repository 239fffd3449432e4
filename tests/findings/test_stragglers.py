"""The rule stragglers: C28, C29 (pieces of one size), A43 (which task takes the time)."""

from __future__ import annotations

import dask.dataframe as dd
import pandas as pd
import pytest

from findings.asking import asked, one, run
from findings.crews import Crewed, side_by_side
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.stragglers import RULE


def skewed(longest: float, others: int = 9) -> Recording:
    """Tasks of 100 ms on two workers, and one that is longer on the second."""
    made = Crewed(2)
    end = side_by_side(made, [*[(0, 100.0)] * others, (1, longest)])
    return made.recording(end)


def test_one_long_task_is_found_with_what_equal_ones_would_save() -> None:
    """C29: 900 and 2,100 ms side by side are 1,500 ms on each if they are cut alike."""
    found = one(RULE, skewed(2100))

    assert found.evidence["stragglers"] == 1
    assert found.evidence["times"] == pytest.approx(21)
    assert found.evidence["why"] == "more work"
    assert found.saving_s == pytest.approx((0.6, 0.6), abs=0.01)
    assert found.cost_s == pytest.approx(1.2)  # for so long the other thread had nothing
    assert "1 task of 10 of `work`" in found.headline


@pytest.mark.parametrize(("longest", "fires"), [(1200, True), (290, False), (100, False)])
def test_it_fires_above_three_times_the_median_where_it_is_waited_for(
    longest: float, fires: bool
) -> None:
    assert bool(asked(RULE, skewed(longest))) is fires


def test_a_long_task_that_nobody_waits_for_is_no_straggler() -> None:
    assert asked(RULE, skewed(850)) == []


def test_few_tasks_have_no_median() -> None:
    assert asked(RULE, skewed(2100, others=2)) == []


def test_its_limit_can_be_set() -> None:
    assert asked(RULE, skewed(2100), times=30) == []


def test_a_worker_on_which_all_is_slow_is_told_from_a_long_task() -> None:
    """A43: the cause is a place, not a task."""
    made = Crewed(2)
    made.on_host(1, "other")
    end = side_by_side(made, [*[(0, 100.0)] * 10, *[(1, 500.0)] * 4])
    found = one(RULE, made.recording(end))

    assert found.evidence["why"] == "slow worker"
    assert found.evidence["worker"] == "tcp://host:11"
    assert "5.0 times slower" in found.headline
    assert 'retire_workers(workers=["tcp://host:11"])' in found.fix.code


def test_the_fix_cuts_the_work_into_parts_of_one_size() -> None:
    found = one(RULE, skewed(2100))
    groups = [list(range(10)), list(range(250))]

    names = run(found, work=len, groups=groups)

    assert names["results"] == (10, 100, 100, 50)


def chunked(pieces: int, kind: str) -> Finding:
    """Pieces of a collection on two threads, of which the last takes 21 times as long or more."""
    made = Crewed(2)
    keys = [(f"scored-{'1a' * 16}", i) for i in range(pieces)]
    lengths = [*[(0, 900.0 / (pieces - 1))] * (pieces - 1), (1, 2100.0)]
    end = side_by_side(made, lengths, keys=keys)
    made.sized(40_000_000, kind)
    return one(RULE, made.recording(end))


@pytest.mark.parametrize(
    ("pieces", "kind"), [(10, "numpy.ndarray"), (10, "int"), (30, "pandas.core.frame.DataFrame")]
)
def test_pieces_that_cannot_be_cut_by_a_line_of_code_get_none(pieces: int, kind: str) -> None:
    """A function of Dask's cannot be called; of many partitions each would be cut, and cost."""
    found = chunked(pieces, kind)
    assert found.fix.code == ""
    assert "cut its chunks" in found.fix.text


def test_frames_of_calls_are_not_a_collection() -> None:
    made = Crewed(2)
    end = side_by_side(made, [*[(0, 100.0)] * 9, (1, 2100)])
    made.sized(40_000_000, "pandas.core.frame.DataFrame")
    assert "ddf" not in one(RULE, made.recording(end)).fix.code


def test_the_fix_for_frames_cuts_them_into_as_many_as_the_longest_is_longer() -> None:
    """By size it would compute them twice, and before Python 3.12 wait for itself for ever."""
    found = chunked(10, "pandas.core.frame.DataFrame")
    frame = dd.from_pandas(pd.DataFrame({"x": range(400)}), npartitions=2)

    names = run(found, ddf=frame)

    assert names["ddf"].npartitions == 2 * 20
    assert names["ddf"].x.sum().compute(scheduler="sync") == 399 * 200
