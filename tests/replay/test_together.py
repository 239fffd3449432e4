"""Replays in which graphs that were handed over one by one are handed over as one."""

from __future__ import annotations

import pytest

from replay.handmade import HandMade
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.common import own_parts
from stageprof_collectors.replay.replay import Change


def rounds(number: int, workers: int = 2, way: float = 10, work: float = 100) -> Recording:
    """A loop: the user's thread works 5 ms, sends a graph, waits for its task, fetches for 10."""
    made, now = HandMade(workers), 0.0
    for i in range(number):
        sent, arrived = now + 5, now + 5 + way
        graph = made.graph(sent, arrived, arrived)
        run = made.run(i % workers, arrived, arrived + work, cause=-1 - graph, wanted=True)
        made.wait(sent, arrived + work + 10, run, arrived + work)
        now = arrived + work + 10
    return made.recording(now)


def saved(recording: Recording, change: Change) -> tuple[float, float]:
    """What a change saves, ms."""
    low, high = recording.replay.saving(change)
    return 1e3 * low, 1e3 * high


def test_four_rounds_become_two_with_one_way_there_and_back() -> None:
    """4 x 125 ms: then 4 x 5 ms of the user's own, 10 there, 2 x 100 on two threads, 10 back."""
    low, high = saved(rounds(4), Change(together=((0, 1, 2, 3),), workers=2))

    assert (low, high) == pytest.approx((260, 260))


def test_on_one_thread_only_the_ways_are_saved() -> None:
    """4 x 125 ms: then 20 + 10 + 400 + 10."""
    low, high = saved(rounds(4, workers=1), Change(together=((0, 1, 2, 3),), workers=1))

    assert (low, high) == pytest.approx((60, 60))


def test_what_a_way_takes_for_what_it_carries_is_not_saved() -> None:
    """Ways of 200 ms: of each but the first, only 20 ms are for the message itself."""
    low, high = saved(rounds(2, workers=1, way=200), Change(together=((0, 1),), workers=1))

    assert (low, high) == pytest.approx((30, 30))


def slices(name: str) -> Recording:
    """Three graphs that the scheduler takes in for 200 ms each: a piece of a layer, and a sum."""
    made, now = HandMade(1), 0.0
    for i in range(3):
        graph = made.graph(now, now + 10, now + 210)
        piece = made.run(0, now + 210, now + 260, cause=-1 - graph, key=(name.format(i), i))
        key = (f"sum-{i:032x}", 0)
        run = made.run(0, now + 260, now + 310, cause=piece, needs=[piece], key=key, wanted=True)
        made.wait(now, now + 310, run, now + 310)
        now += 310
    return made.recording(now)


def test_what_a_scheduler_does_for_tasks_that_all_graphs_have_is_done_once() -> None:
    """Of the three pieces each graph brings all; one task of four is its own: 2 x 200 ms less."""
    recording = slices("array")
    own = own_parts(recording, [(0, 1, 2)])
    assert own == {1: 0.25, 2: 0.25}
    change = Change(together=((0, 1, 2),), workers=1, own=own)
    # Of ways of 210 ms two become 10 + 50 ms, 20 of which are a message's; as before beside it.
    low, high = saved(recording, change)
    assert (low, high) == pytest.approx((2 * (150 + 20), 2 * (150 + 20)), abs=25)


def test_graphs_without_common_layers_are_taken_in_one_by_one() -> None:
    recording = slices("array-{}")
    assert own_parts(recording, [(0, 1, 2)]) == {}
    low, high = saved(recording, Change(together=((0, 1, 2),), workers=1))
    assert (low, high) == pytest.approx((40, 40), abs=25)


def test_a_single_graph_changes_nothing() -> None:
    assert saved(rounds(4), Change(together=((0,),), workers=2)) == (0, 0)


def test_two_groups_are_each_handed_over_once() -> None:
    """Twice two rounds: 10 + 10 + 100 + 10 each."""
    low, high = saved(rounds(4), Change(together=((0, 1), (2, 3)), workers=2))

    assert (low, high) == pytest.approx((240, 240))


def test_a_task_on_the_callers_own_thread_is_left_where_it_is() -> None:
    """What the synchronous scheduler ran is no message."""
    recording = rounds(2)

    assert recording.replay.wall(Change(together=((0, 7),))) == pytest.approx((0.25, 0.25))


def test_tasks_bare_of_all_around_them_take_as_long_as_their_functions() -> None:
    bare = Change(lead=0.0, fetch=0.0, lag=0.0, begin=0.0, serial=lambda _: 0.0)

    low, high = rounds(4, workers=1).replay.wall(bare)

    assert (low, high) == pytest.approx((0.4, 0.4))
