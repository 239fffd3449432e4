"""The rule repeated-scatter: what is scattered again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from distributed import Client

import stageprof
from findings.asking import asked, one, run
from findings.crowded import CLIENT, FILE, LANE, Program, calls, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.repeated_scatter import RULE
from stageprof_runtime.event import BLOCK, SCATTER

MB = 1_000_000


def scattering(numbers: list[int], *, each: float = 100.0) -> Recording:
    """Objects of these numbers are scattered one after another, each in so many ms."""
    made = Program()
    for number in numbers:
        what = "numpy.ndarray", "table", FILE, 10
        made.rows[CLIENT].append((SCATTER, ns(made.now), number, *what, FILE, 12, 30 * MB))
        begun, made.now = ns(made.now + 0.01), made.now + each
        made.rows[CLIENT].append((BLOCK, begun, ns(made.now), LANE, "_scatter", 0, 0, 0, ""))
    made.tasks(calls(4), work=100.0)
    return made.recording()


def test_all_but_the_first_time_is_its_cost() -> None:
    found = one(RULE, scattering([1, 1, 1, 1]))

    assert found.headline.startswith(
        "`table`, an ndarray of 30.0 MB made at etl.py:10, is scattered 4 times at etl.py:12: "
    )
    assert found.cost_s == pytest.approx(0.3, rel=0.01)
    assert found.saving_s == pytest.approx((0.3, 0.3), rel=0.02)
    assert found.evidence["sent_again_bytes"] == 90 * MB


@pytest.mark.parametrize(
    ("numbers", "limits"), [([1], {}), ([1, 2, 3], {}), ([1, 1], {"share": 0.9}), ([], {})]
)
def test_it_is_silent_of_what_is_scattered_once_and_of_little(
    numbers: list[int], limits: dict[str, Any]
) -> None:
    assert not asked(RULE, scattering(numbers), **limits)


def test_objects_that_are_scattered_in_turn_are_two_findings() -> None:
    costs = [f.cost_s for f in asked(RULE, scattering([1, 2, 1, 2, 1]))]
    assert sorted(costs) == pytest.approx([0.1, 0.2], rel=0.01)


def test_what_goes_twice_in_one_call_goes_no_second_time_in_another() -> None:
    made = Program()
    for _ in range(3):
        what = "numpy.ndarray", "table", FILE, 10
        made.rows[CLIENT].append((SCATTER, ns(made.now), 1, *what, FILE, 12, 30 * MB))
    begun, made.now = ns(made.now + 0.01), made.now + 100
    made.rows[CLIENT].append((BLOCK, begun, ns(made.now), LANE, "_scatter", 0, 0, 0, ""))
    made.tasks(calls(4), work=100.0)
    assert not asked(RULE, made.recording(), share=0.0)


@pytest.mark.cluster
def test_pieces_of_an_array_that_are_scattered_each_once_are_nothing_to_change(
    client: Client,
) -> None:
    table = np.arange(500_000.0)
    with stageprof.profile() as region:
        there = client.scatter(np.array_split(table, 4))
        assert sum(client.gather(client.map(np.sum, there))) == table.sum()
    assert not asked(RULE, region.recording, share=0.0)


def entry(table: np.ndarray, i: int) -> float:
    return float(table[i])


@pytest.mark.cluster
def test_a_table_that_a_loop_scatters_is_named_and_the_printed_code_sends_it_once(
    client: Client,
) -> None:
    table = np.arange(500_000.0)
    with stageprof.profile() as region:
        # Of one hash the scheduler takes the first away while the next comes, with its tasks.
        there = [client.scatter(table, hash=False) for _ in range(6)]
        values = client.gather([client.submit(entry, t, i) for i, t in enumerate(there)])

    found = one(RULE, region.recording, share=0.0)

    assert (found.where.variable, found.evidence["times"]) == ("table", 6)
    with stageprof.profile() as after:
        future = run(found, table=table)["table"]
        assert client.gather([client.submit(entry, future, i) for i in range(6)]) == values
    assert not asked(RULE, after.recording, share=0.0)
