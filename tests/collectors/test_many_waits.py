"""Fetches of many workers, and many stalls of one loop, cost about so many times one of them."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable

import pytest

from findings.crowded import WORKER, Program, calls
from replay.handmade import HandMade
from stageprof_collectors.findings.blockage import blocked
from stageprof_collectors.recording import Recording
from stageprof_runtime.event import HOLD, MARK, RUN, SAMPLE


def fetched(workers: int) -> Callable[[], object]:
    """The path through a chain of tasks, each of which fetches what the worker before made."""
    made = HandMade(workers)
    last, now = made.run(0, 3, 4, cause=-1 - made.graph(0, 1, 2)), 4.0
    for w in range(1, workers):
        last = made.run(
            w, now + 3, now + 4, cause=last, needs=[last], lead=(now, now + 1), fetched=now + 2
        )
        now += 4
    made.wait(2, now + 2, last, now + 1)
    recording = made.recording(now + 3)
    return lambda: recording.path_steps


def stalled(stalls: int) -> Callable[[], object]:
    """What is known of so many stalls, in each of which the loop waits for the GIL."""
    made = Program()
    made.tasks(calls(stalls), work=200.0)
    rows = made.rows[WORKER]
    for start in [row[4] for row in rows if row[0] == RUN]:
        end = start + 180_000_000
        rows += [(SAMPLE, end, "loop.stall_s", 0.15), (HOLD, start, end, 1, 1)]
    rows += [(MARK, rows[0][2], "loop thread", "1"), (MARK, rows[0][2], "gil source", "watch")]
    recording: Recording = made.recording()
    assert len(blocked(recording)[recording.store.places.index(WORKER)]) == stalls
    return lambda: blocked(recording)


def calls_for(work: Callable[[], object]) -> int:
    """Function calls that some work takes."""
    with cProfile.Profile() as profile:
        work()
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("of", [fetched, stalled])
def test_four_times_as_many_take_about_four_times_the_calls(
    of: Callable[[int], Callable[[], object]],
) -> None:
    """Not sixteen times, as where all workers, or all waits, are looked at for each."""
    calls_for(of(10))  # what is made once
    assert calls_for(of(320)) < 5 * calls_for(of(80))
