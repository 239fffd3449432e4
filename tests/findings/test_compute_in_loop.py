"""The rule compute-in-loop: A9 (many operations in one), A20, A39."""

from __future__ import annotations

import cProfile
import pstats

import dask
import dask.dataframe as dd
import pandas as pd
import pytest

import clusters
import stageprof
from findings.asking import asked, one, run
from findings.crews import FILE, Crewed
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.compute_in_loop import RULE

#: The call, its graph's way, its task, the way of the result, ms.
SENT, WAY, WORK, BACK = 5.0, 5.0, 100.0, 5.0
ROUND = SENT + WAY + WORK + BACK


def looped(
    rounds: int = 8,
    verdict: str = "apart",
    workers: int = 2,
    tasks: int = 1,
    way: float = WAY,
    key: str = "simulated-{:08x}-0000-4000-8000-000000000000",
    **lines: int,
) -> Recording:
    """One compute after another, each of some tasks on the same worker."""
    each = ROUND - WAY + way
    made = Crewed(workers)
    if verdict:
        for line in {12, *lines.values()}:
            made.verdict(verdict, line)
    for i in range(rounds):
        begin = i * each
        made.span("build", begin, begin + SENT)
        graph = made.graph(begin + SENT, begin + SENT + way, begin + SENT + way)
        made.at_line(graph, lines.get(f"line_{i}", 12))
        start = begin + SENT + way
        name = key.format(i)
        for _ in range(tasks):
            made.run(i % workers, start, start + WORK, cause=-1 - graph, key=name, wanted=True)
        made.wait_for(begin + SENT, begin + each, name)
    return made.recording(rounds * each)


def test_computes_that_do_not_need_each_other_are_found_with_what_one_would_save() -> None:
    """Eight rounds of 115 ms: at once four rounds of 100 ms on two threads, and one way."""
    found = one(RULE, looped())

    assert found.evidence["computes"] == 8
    assert found.saving_s == pytest.approx((0.47, 0.47), abs=0.02)
    assert "8 computes one after another at etl.py:12" in found.headline
    assert found.where.line == 12


def test_a_loop_that_computes_on_two_lines_is_found() -> None:
    """`n = len(df)`, and a mean on the next line: neither followed itself."""
    found = asked(RULE, looped(line_1=13, line_3=13, line_5=13, line_7=13))

    assert sorted(each.where.line for each in found) == [12, 13]
    assert [each.evidence["computes"] for each in found] == [4, 4]
    for each in found:  # those of the other line stay where they are
        assert 0 < each.saving_s[1] < each.cost_s


def test_a_loop_whose_rounds_need_each_other_is_innocent() -> None:
    """Gradient descent cannot be computed at once."""
    assert asked(RULE, looped(verdict="carried")) == []


def test_where_the_program_could_not_be_read_it_may_save_nothing() -> None:
    found = one(RULE, looped(verdict=""))

    assert found.saving_s[0] == 0
    assert "could not be read" in found.fix.text
    assert found.severity == Severity.NOTE  # an optimizer's rounds need each other


def test_a_loop_through_rows_is_to_compute_the_frame_once() -> None:
    found = one(RULE, looped(verdict="rows"))

    assert found.saving_s == pytest.approx((0.47, 0.47), abs=0.02)
    assert "partitions one after another" in found.fix.text
    assert found.also == {"built:etl.py:12"}  # construction there is for each partition, and goes
    frame = pd.DataFrame({"x": [1, 2]})
    assert len(run(found, ddf=dd.from_pandas(frame, npartitions=2))["frame"]) == 2


@pytest.mark.parametrize(("rounds", "fires"), [(2, False), (3, True)])
def test_it_fires_from_three_computes_on(rounds: int, fires: bool) -> None:
    assert bool(asked(RULE, looped(rounds))) is fires


def test_computes_from_different_lines_are_no_loop() -> None:
    assert asked(RULE, looped(4, line_0=1, line_1=2, line_2=3, line_3=4)) == []


def test_computes_that_fill_all_threads_save_little() -> None:
    found = one(RULE, looped(workers=1))

    assert found.saving_s[1] < 0.15


def test_one_cause_is_named_by_its_line() -> None:
    assert one(RULE, looped()).cause == f"loop:{FILE}:12"


def test_the_fix_of_futures_gathers_them_at_once() -> None:
    found = one(RULE, looped(key="simulated-{:032x}"))

    with clusters.inside() as client:
        names = run(found, simulated=lambda x: x + 1, items=range(5), client=client)
    assert names["results"] == [1, 2, 3, 4, 5]


def test_the_fix_computes_all_items_at_once() -> None:
    found = one(RULE, looped())

    names = run(found, simulated=abs, items=[-1, -2, -3])

    assert names["results"] == (1, 2, 3)


def test_threads_are_said_where_they_are_known() -> None:
    """Of workers; how many a local scheduler may use was not recorded."""
    assert one(RULE, looped(workers=3)).evidence["threads"] == 3


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_of_a_local_scheduler_no_number_of_threads_is_said(scheduler: str) -> None:
    with dask.config.set(scheduler=scheduler), stageprof.profile() as prof:
        for i in range(4):
            dask.delayed(str)(i).compute()

    evidence = one(RULE, prof.recording).evidence

    assert evidence["computes"] == 4
    assert "threads" not in evidence


def steps_of_asking(rounds: int) -> float:
    """Calls of functions until it is said what a loop costs whose graphs are long on their way."""
    recording = looped(rounds, way=40.0)
    recording.stages()
    with cProfile.Profile() as profile:
        asked(RULE, recording)
    return float(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_four_times_the_computes_take_four_times_the_steps() -> None:
    """All that are handed over as one share the way of all: it is not measured for each."""
    assert steps_of_asking(800) < 5 * steps_of_asking(200)
