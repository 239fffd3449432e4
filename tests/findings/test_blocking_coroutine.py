"""The rule blocking-coroutine: tasks on their worker's event loop that wait without `await`."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from distributed import Client

import stageprof
from findings.asking import asked, one, run
from replay.handmade import CLIENT, SCHEDULER, HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.blocking_coroutine import RULE
from stageprof_runtime.event import SAMPLE, TURN


def program(
    tasks: int = 20,
    *,
    each: float = 100,
    cpu: float = 0.01,
    threads: int = 4,
    turn: float = 1.0,
    others: float = 0.0,
) -> Recording:
    """Coroutines of `each` ms on one loop, one after another; it is theirs for a part of that.

    Other programs keep so many of two processors busy, if any.
    """
    made = HandMade(1, threads)
    graph, last = made.graph(0, 0, 0), -1
    for i in range(tasks):
        start, stop = i * each, (i + 1) * each
        key = f"asked-{i:032x}"
        last = made.run(0, start, stop, cause=-1 - graph, lead=(0, 0), key=key, finished=stop)
        had = turn * each
        row = (TURN, last, ns(start), ns(start + had), round(cpu * had * 1e6))
        made.rows_of(made._workers[0]).append(row)
    made.wait(0, tasks * each, last, tasks * each)
    if others:
        crowd(made, tasks * each, others, cpu * turn)
    return made.recording(tasks * each)


def crowd(made: HandMade, stop: float, others: float, own: float) -> None:
    """Others kept so many of two processors busy, and the worker so many."""
    worker = made._workers[0]
    for place, took in ((CLIENT, 0.0), (SCHEDULER, 0.0), (worker, own)):
        for t in (0.0, stop):
            seconds = t / 1e3
            sums = {"host.cpus": 2, "host.busy_s": seconds * (others + own)}
            for name, value in (sums | {"process.cpu_s": seconds * took}).items():
                made.rows_of(place).append((SAMPLE, ns(t), name, float(value)))


def test_what_waits_on_the_loop_is_told_with_what_threads_would_save() -> None:
    """Two seconds on one loop are half a second on four threads."""
    found = one(RULE, program())
    assert found.headline.startswith("20 tasks of `asked`, a coroutine, keep the event loop of")
    assert found.cost_s == pytest.approx(2.0)
    assert found.saving_s[1] == pytest.approx(1.5 * 0.99)
    assert found.evidence["at_once"] == 4


@pytest.mark.parametrize(
    "other",
    [
        {"cpu": 0.9},  # threads would take turns at that
        {"turn": 0.05},  # most of it is awaited
        {"threads": 1},
        {"tasks": 1},
        {"cpu": 0.1, "others": 1.9},  # they compute with what others leave of the processors
    ],
)
def test_it_is_silent_of_others(other: dict[str, Any]) -> None:
    assert not asked(RULE, program(**other))


@pytest.mark.parametrize("others", [1.5, 1.9])
def test_what_waits_is_told_beside_other_programs_too(others: float) -> None:
    assert one(RULE, program(others=others)).saving_s[1] > 1.2


def test_more_threads_are_not_asked_for_where_a_loop_runs_them() -> None:
    told = {found.rule for found in program().findings()}
    assert RULE.id in told
    assert "io-bound" not in told


async def answered(number: int) -> int:
    time.sleep(0.05)  # noqa: ASYNC251 (what the rule is about)
    return number


@pytest.mark.cluster
def test_what_is_printed_gives_the_same_result_on_threads(client: Client) -> None:
    with stageprof.profile(gil=False) as region:
        before = client.gather(client.map(answered, range(12), pure=False))
    found = one(RULE, region.recording, share=0.0)
    instead = run(found, answered=answered)["answered_in_thread"]
    with stageprof.profile(gil=False) as again:
        assert client.gather(client.map(instead, range(12), pure=False)) == before
    assert not asked(RULE, again.recording, share=0.0)


async def awaits(number: int) -> int:
    await asyncio.sleep(0.05)
    return number


@pytest.mark.cluster
def test_coroutines_that_await_are_none(client: Client) -> None:
    with stageprof.profile(gil=False) as region:
        client.gather(client.map(awaits, range(12), pure=False))
    assert not asked(RULE, region.recording, share=0.0)
