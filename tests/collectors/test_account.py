"""Accounts add up, and their tables say what design fixes."""

from __future__ import annotations

import pytest

from stageprof_collectors.account.account import Account, check
from stageprof_runtime.stage import OUTSIDE, STEP, Stage


def account(compute: int, outside: int) -> Account:
    """An account with two lines, ns."""
    made = Account(compute + outside)
    made.entries[STEP["compute"], "worker"].wall = compute
    made.entries[STEP["compute"], "worker"].busy = 2 * compute
    made.entries[OUTSIDE, "client"].wall = outside
    return made


def test_stages_are_the_six_and_two_more_and_sum_to_the_wall_time() -> None:
    stages = account(3_000_000_000, 1_000_000_000).stages()

    assert stages.index.tolist() == [str(stage) for stage in Stage]
    assert stages["wall_s"].sum() == pytest.approx(4.0)
    assert stages["share"].sum() == pytest.approx(1.0)
    assert stages["busy_s"]["execution"] == pytest.approx(6.0)


def test_accounts_can_be_merged() -> None:
    one, two = account(3, 1), account(10, 5)
    total = one + two

    assert total.wall == 19
    assert check(total) == 0
    assert total.entries[STEP["compute"], "worker"].wall == 13
    assert one.entries[STEP["compute"], "worker"].wall == 3


def test_the_gil_is_a_share_of_compute_and_not_counted_twice() -> None:
    made = account(4, 0)
    made.entries[STEP["gil.wait"], "worker"].busy = 3

    assert made.stages()["busy_s"]["execution"] == pytest.approx(8e-9)
    assert "gil.wait" in set(made.steps()["step"])


def test_an_empty_account_has_all_lines() -> None:
    assert len(Account().stages()) == 8
    assert len(Account().steps()) == 0
