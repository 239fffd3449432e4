"""The rule repeated-compute: A7, B9 (passes over the same data), C34."""

from __future__ import annotations

from typing import Any

import dask
import pytest

from findings.asking import asked, one, run
from findings.crews import Crewed
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.repeated_compute import RULE


def again(keys: list[list[Any]], *, lines: bool = True, kind: str = "int") -> Recording:
    """One compute after another, each of tasks of 100 ms one after another."""
    made, now = Crewed(1), 0.0
    for i, some in enumerate(keys):
        graph = made.graph(now, now, now)
        made.at_line(graph, 25 + i if lines else 25)
        begun, cause = now, -1 - graph
        for key in some:
            last = key == some[-1]
            cause = made.run(0, now, now + 100, cause=cause, key=key, wanted=last)
            made.sized(1_000_000, kind)
            now += 100
        made.wait_for(begun, now, some[-1])
    return made.recording(now)


READ: list[Any] = [("read-1a2b", i) for i in range(3)]


def test_keys_that_are_computed_again_are_found_with_what_they_cost() -> None:
    """B9: the same three pieces are made for each of two questions."""
    found = one(RULE, again([[*READ, "mean"], [*READ, "spread"]]))

    assert found.evidence["tasks_again"] == 3
    assert found.evidence["kept_bytes"] == 3_000_000
    assert found.cost_s == pytest.approx(0.3)
    assert found.saving_s == pytest.approx((0.3, 0.3), abs=0.02)
    assert "3 tasks, most of `read`" in found.headline
    assert "etl.py:26" in found.headline


def test_other_keys_are_no_repetition() -> None:
    assert asked(RULE, again([["a", "mean"], ["b", "spread"]])) == []


def test_a_single_compute_repeats_nothing() -> None:
    assert asked(RULE, again([[*READ, "mean"]])) == []


def test_little_that_is_done_again_is_not_worth_a_word() -> None:
    assert asked(RULE, again([["a"], ["a", *map(str, range(60))]])) == []


def test_a_failed_attempt_is_not_a_computation() -> None:
    """What was retried is for another rule."""
    made = Crewed(1)
    graph = made.graph(0, 0, 0)
    first = made.run(0, 0, 100, cause=-1 - graph, key="a", status=1)
    made.run(0, 100, 200, cause=first, key="a", wanted=True)
    made.wait_for(0, 200, "a")

    assert asked(RULE, made.recording(200)) == []


def test_the_fix_asks_all_questions_at_once() -> None:
    found = one(RULE, again([[*READ, "mean"], [*READ, "spread"]]))
    numbers = dask.delayed([1, 2, 3])

    names = run(found, first=dask.delayed(min)(numbers), second=dask.delayed(max)(numbers))

    assert (names["first"], names["second"]) == (1, 3)


def test_the_fix_of_a_loop_persists() -> None:
    import dask.array as da

    made = again([[*READ, "mean"], [*READ, "mean2"]], lines=False, kind="numpy.ndarray")
    names = run(one(RULE, made), data=da.ones(4, chunks=2))

    assert float(names["data"].sum().compute()) == 4
