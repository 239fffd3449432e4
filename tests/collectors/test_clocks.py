"""Clocks of other hosts, from round trips to a scheduler whose loop is busy now and then."""

from __future__ import annotations

import numpy as np
import pytest

from stageprof_collectors.storage.alignment import Clock, align
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import PING, Place

S = 1_000_000_000
MS = 1_000_000
CLIENT = Place("client", "here", 1, "Client-1", 0)
SCHEDULER = Place("scheduler", "there", 2, "tcp://there:1", 0)
#: how far the scheduler's clock is ahead at first, ns
AHEAD = 7_000 * S
MINUTE = 60 * S


def clock(blocked: tuple[int, int], ppm: int = 0) -> Clock:
    """The scheduler's, asked once a second for a minute; what it answers waits while it is blocked.

    Args:
        blocked: from when to when its loop does something else, ns of the client's clock.
        ppm: by how much its clock is faster than the client's.
    """
    rows, sent = [], 0
    while sent < MINUTE:
        there = sent + MS // 10
        there = blocked[1] if blocked[0] <= there < blocked[1] else there
        back = there + MS // 10
        rows.append((PING, sent, theirs(there, ppm), back, SCHEDULER.name))
        sent = max(sent + S, back)
    store = Store()
    store.add(pack(CLIENT, 0, MINUTE, rows))
    store.add(pack(SCHEDULER, 0, theirs(MINUTE, ppm), []))
    return align(store, 0)[1]


def theirs(t: int, ppm: int) -> int:
    """What the scheduler's clock says at an instant of the client's."""
    return t + AHEAD + t * ppm // 1_000_000


@pytest.mark.parametrize("ppm", [0, 100])
def test_a_loop_that_is_blocked_for_seconds_bends_no_clock(ppm: int) -> None:
    """The only round trip of a window that began then took as long, and half of it is no offset."""
    found = clock((19_950 * MS, 25_300 * MS), ppm)
    true = np.arange(0, MINUTE, S // 2)
    read = found.read(np.array([theirs(int(t), ppm) for t in true]))
    assert np.abs(read - true).max() < MS
    assert found.error < MS


def test_a_clock_of_which_all_that_is_known_took_seconds_says_so() -> None:
    """There is nothing better to go by."""
    found = clock((0, MINUTE))
    assert found.error == pytest.approx(MINUTE / 2, rel=0.01)
