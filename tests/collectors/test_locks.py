"""What a thread waited for in Dask behind locks, of which coroutines wait for many at once."""

from __future__ import annotations

import cProfile
import pstats
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from stageprof_collectors.account.block import LATE_NS, Block
from stageprof_collectors.account.locks import behind
from stageprof_runtime.event import LOCK

#: Times are drawn in parts of what a lock may be noted too short by.
PART = LATE_NS // 3
SPANS = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 20)), max_size=6)


def blocks(drawn: list[tuple[int, int]], call: str) -> list[Block]:
    spans = sorted((PART * start, PART * (start + length)) for start, length in drawn)
    return [Block(start, stop, 1, 7, call, 0, 0, 0, "") for start, stop in spans]


def alone(lock: Block, calls: list[Block], came: list[tuple[int, str]]) -> dict[int, set[str]]:
    """The keys that one lock waited for, by when in parts: until each, or until a call began."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    now = lock.start
    ends = [(t, 0, key, t) for t, key in came] + [(c.start, 1, "", c.stop) for c in calls]
    for t, _, key, after in sorted(ends):
        if t > lock.start and now < t <= lock.stop + LATE_NS and key:
            for at in range(now, min(t, lock.stop), PART):
                found[at].add(key)
        now = max(now, after)
    return found


@given(SPANS, SPANS, st.lists(st.integers(1, 60), max_size=8))
def test_locks_at_once_wait_for_what_each_waits_for(
    held: list[tuple[int, int]], called: list[tuple[int, int]], arrivals: list[int]
) -> None:
    locks, calls = blocks(held, LOCK), blocks(called, "result")
    came = [(PART * t, f"key-{t}") for t in sorted(set(arrivals))]

    expected: defaultdict[int, set[str]] = defaultdict(set)
    for lock in locks:
        for at, keys in alone(lock, calls, came).items():
            expected[at] |= keys
    found: defaultdict[int, set[str]] = defaultdict(set)
    for wait in behind(locks, calls, came):
        assert wait.start < wait.stop <= wait.awaited
        for at in range(wait.start, wait.stop, PART):
            found[at].add(wait.key)
    assert found == expected


def calls_for(coroutines: int) -> tuple[int, int]:
    """Function calls, and waits found, where so many wait for one lock, each until its key came."""
    locks = blocks([(1, 3 + 2 * i) for i in range(coroutines)], LOCK)
    calls = blocks([(2 * i + 2, 1) for i in range(coroutines)], "result")
    came = [(PART * (2 * i + 4), f"key-{i}") for i in range(coroutines)]
    with cProfile.Profile() as profile:
        waits = len(list(behind(locks, calls, came)))
    return pstats.Stats(profile).total_calls, waits  # type: ignore[attr-defined]


def test_four_times_the_coroutines_are_about_four_times_the_waits() -> None:
    """Not sixteen times, as where each waits for the keys of all."""
    few, many = calls_for(100), calls_for(400)
    assert many[0] < 5 * few[0]
    assert many[1] < 5 * few[1]
