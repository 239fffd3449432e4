"""Transitions that let tasks go are no cost of the few tasks that happen to run meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np

from stageprof_collectors.account.busy import _let_go
from stageprof_collectors.account.timeline import Timeline


def gone(assigned: list[int], finished: list[int], counts: list[int]) -> list[int]:
    """What is let go of sums of 1,000 ns a call that ended at 10, 20, ..."""
    runs = {"assigned": np.array(assigned), "finished": np.array(finished)}
    ends = np.arange(1, len(counts) + 1) * 10
    timeline = cast("Timeline", SimpleNamespace(runs=runs))
    found: list[int] = _let_go(ends, np.array(counts) * 1000, np.array(counts), timeline).tolist()
    return found


def test_two_calls_for_each_task_that_was_assigned_or_ended_are_theirs() -> None:
    assert gone([5, 6, 15], [8, 18, 19], [6, 6, 0]) == [0, 0, 0]


def test_what_is_beyond_that_lets_tasks_go() -> None:
    assert gone([5], [15], [2, 12, 30]) == [0, 10_000, 30_000]


def test_a_task_that_never_ended_did_not_end_at_the_beginning() -> None:
    assert gone([15], [0], [2, 2]) == [2_000, 0]


def test_what_came_after_the_last_sum_is_no_part_of_it() -> None:
    assert gone([5, 99], [99, 99], [2]) == [0]
