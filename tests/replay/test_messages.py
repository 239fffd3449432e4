"""Changes of the tasks' ways where placing made anew is not the recorded run."""

from __future__ import annotations

import pytest

from replay.handmade import HandMade
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.replay import Change


def queued() -> Recording:
    """Two threads wait for messages that came one after another: ways that no replay would queue.

    Six tasks of 1 ms on two workers; each was on its way for as long as those before it, too.
    """
    made = HandMade(workers=2)
    g = made.graph(0, 0, 0, wanted=6)
    for i in range(6):
        received = 100.0 * (i + 1)
        made.run(i % 2, received, received + 1, cause=-1 - g, lead=(0, received), wanted=True)
    made.wait(0, 601, 5, 601)
    return made.recording(601)


def test_saving_is_what_the_recorded_order_and_the_critical_path_say() -> None:
    low, high = queued().replay.saving(Change(lead=0.5))
    assert (low, high) == pytest.approx((0.3, 0.3), rel=0.02)


@pytest.mark.parametrize(
    ("change", "of_messages"),
    [
        (Change(lead=0.5, lag=0.1), True),
        (Change(compute=0.5), False),
        (Change(lead=0.5, threads=4), False),
    ],
)
def test_change_says_whether_it_is_of_messages_only(change: Change, of_messages: bool) -> None:
    assert change.of_messages == of_messages


def test_placing_made_anew_is_left_out_where_it_is_not_the_recorded_run() -> None:
    """Four workers could have shared what one did; half of each task's way is a tenth of that."""
    made = HandMade(workers=4)
    g = made.graph(0, 0, 0, wanted=4)
    for i in range(4):
        lead = (100.0 * i, 100.0 * i + 20)
        cause = -1 - g if not i else i - 1
        needs = [-1] if i else None  # it waited for the thread, not for a result
        made.run(
            0, 100.0 * i + 20, 100.0 * i + 100, cause=cause, needs=needs, lead=lead, wanted=True
        )
    made.wait(0, 400, 3, 400)
    recording = made.recording(400)
    low, high = recording.replay.saving(Change(lead=0.5))
    assert (low, high) == pytest.approx((0.04, 0.04), abs=0.001)
