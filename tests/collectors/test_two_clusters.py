"""A client of two clusters on other hosts asks two schedulers for the time."""

from __future__ import annotations

import numpy as np

from stageprof_collectors.account.attempts import with_ongoing
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage.alignment import align
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import MARK, PING, Place

S = 1_000_000_000
CLIENT = Place("client", "here", 1, "Client-1", 0)
#: scheduler -> by how much its clock is ahead of the client's, ns
SCHEDULERS = {
    Place("scheduler", "east", 2, "tcp://east:1", 0): 7_000 * S,
    Place("scheduler", "west", 3, "tcp://west:1", 0): -9_000 * S,
}


def test_the_clocks_of_two_schedulers_are_kept_apart() -> None:
    """Of each window the quickest round trip was taken, whichever scheduler it went to."""
    store, rows = Store(), []
    for i in range(40):
        sent = i * S
        for number, (scheduler, ahead) in enumerate(SCHEDULERS.items()):
            trip = 100_000 + 1_000 * ((i + number) % 7)
            rows.append((PING, sent, sent + trip // 2 + ahead, sent + trip, scheduler.name))
    store.add(pack(CLIENT, 0, 40 * S, rows))
    for scheduler, ahead in SCHEDULERS.items():
        store.add(pack(scheduler, 0, 40 * S + ahead, []))

    clocks = align(store, 0)

    for place, ahead in enumerate(SCHEDULERS.values(), start=1):
        there = np.array([5 * S, 20 * S]) + ahead
        assert np.abs(clocks[place].read(there) - (there - ahead)).max() < 100_000


def test_runs_that_go_on_are_told_apart_by_their_worker() -> None:
    """Each scheduler counts its runs from 0."""
    rows = {"run": np.array([0, 1]), "worker": np.array([5, 5]), "start": np.array([1, 2])}
    told = {"run": np.array([1, 1]), "worker": np.array([5, 6]), "start": np.array([2, 3])}
    joined = with_ongoing(rows, told)
    assert sorted(zip(joined["run"].tolist(), joined["worker"].tolist(), strict=True)) == [
        (0, 5),
        (1, 5),
        (1, 6),
    ]


def test_a_clock_of_which_nothing_is_known_does_not_stretch_what_was_broken_off() -> None:
    """A machine that was started ten days before has another monotonic clock."""
    store = Store()
    store.add(pack(CLIENT, 0, S, [(MARK, S, "region start", "7 7")]))
    store.add(pack(CLIENT, 1, 2 * S, []))
    store.add(pack(Place("worker", "far", 4, "tcp://far:1", 0), 0, 864_000 * S, []))
    region = Recording(store).timeline.region
    assert region.stop - region.start == S
