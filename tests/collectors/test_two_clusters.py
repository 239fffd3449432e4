"""A client of two clusters on other hosts asks two schedulers for the time."""

from __future__ import annotations

import numpy as np

from stageprof_collectors.storage.alignment import align
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import pack
from stageprof_runtime.event import PING, Place

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
