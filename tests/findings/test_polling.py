"""The rule polling: a program that sleeps until its futures are done, and on."""

from __future__ import annotations

from typing import Any

import pytest

from findings.asking import asked, one
from replay.handmade import CLIENT, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.polling import RULE
from stageprof_runtime.event import FLAME, NODE
from stageprof_runtime.stage import OUTSIDE
from stageprof_runtime.stopped import WAITING

LIBRARY = "/usr/lib/python3.11/site-packages/requests/api.py"


def polled(
    *,
    rounds: int = 2,
    busy: float = 300,
    pause: float = 1000,
    how: str = WAITING,
    file: str = "/u/etl.py",
    slept: float = 1.0,
    blocks: bool = False,
) -> Recording:
    """Rounds of a task of `busy` ms, for which the program asks after `pause` ms.

    It was seen at line 15 of `file` for a part `slept` of the time outside of Dask, and at work
    elsewhere for the rest. If it `blocks`, it waits for each task before it pauses.
    """
    made = HandMade(1)
    for i in range(rounds):
        begun = i * (pause + 10)
        graph = made.graph(begun, begun, begun)
        run = made.run(0, begun, begun + busy, cause=-1 - graph, wanted=True)
        if blocks:
            made.wait(begun, begun + busy, run, begun + busy, call="_wait")
        made.wait(begun + pause, begun + pause + 1, run, begun + busy)
    end = rounds * (pause + 10)
    rows = made.rows_of(CLIENT)
    rows.append((NODE, 0, -1, "main", "/u/etl.py", 40))
    rows.append((NODE, 1, 0, "looks", file, 15))
    for node, part, kind in ((0, 1 - slept, "python"), (1, slept, how)):
        total = ns(end * part) - ns(0)
        rows.append((FLAME, ns(end), OUTSIDE, "", kind, node, 20, total))
    return made.recording(end)


def test_what_passes_after_tasks_are_done_is_its_cost() -> None:
    found = one(RULE, polled())

    assert found.headline.startswith(
        "The program sleeps at etl.py:15 while tasks run, and sleeps on when they are done: 1.40 s"
    )
    assert found.headline.endswith("in 2 rounds")
    assert found.cost_s == pytest.approx(1.4, abs=0.01)
    assert found.saving_s == pytest.approx((0.8 * 1.4, 1.4), abs=0.01)
    assert (found.where.file, found.where.line) == ("/u/etl.py", 15)
    assert "wait(futures)" in found.fix.code


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"how": "python"}, id="its own work"),
        pytest.param({"file": LIBRARY}, id="a service"),
        pytest.param({"slept": 0.4}, id="mostly elsewhere"),
        pytest.param({"busy": 990}, id="hardly late"),
        pytest.param({"busy": 1000}, id="never late"),
        pytest.param({"blocks": True}, id="a pause after it has waited"),
    ],
)
def test_what_else_a_program_does_beside_its_tasks_is_none(other: dict[str, Any]) -> None:
    assert asked(RULE, polled(**other)) == []


def test_a_program_without_futures_polls_nothing() -> None:
    assert asked(RULE, HandMade(1).recording(1000)) == []
