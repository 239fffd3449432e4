"""Clocks: from each place's own to the client's, with the error of the estimate.

Places measured many small round trips to the scheduler's clock. Of those within a window the one
with the smallest round trip tells the offset best, and half of it bounds the error (Cristian,
1989; the filter is NTP's). Drift is followed from window to window. What causality says more
(a task cannot start before it was assigned, nor be reported before it ended) is applied by the
caller through `shift`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.storage.store import Store

Ints = NDArray[np.int64]

#: Round trips are compared within windows of this length.
WINDOW_NS = 5_000_000_000
#: Of so many ns two clocks drift apart by less than one: 500 ppm is what NTP slews a clock by.
DRIFT = 2_000


@dataclass
class Clock:
    """How to read one place's stamps: `t + offset(t)` is the reference's clock."""

    #: instants of the place's own clock, and the offset there; constant beyond the ends
    knots: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    offsets: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    #: bound of the error of the offset, ns; -1 if nothing is known
    error: int = 0
    #: added by causality, ns
    shift: int = 0

    def read(self, t: Ints) -> Ints:
        """Stamps of the place -> the reference's clock, ns."""
        if len(self.knots) == 1:
            constant: Ints = t + (int(self.offsets[0]) + self.shift)
            return constant
        base = self.knots[0]
        drift = np.interp((t - base).astype(float), (self.knots - base).astype(float), self.offsets)
        drifting: Ints = t + np.rint(drift).astype(np.int64) + self.shift
        return drifting

    @property
    def known(self) -> bool:
        """Whether anything tells what its offset is."""
        return self.error >= 0 or self.shift != 0 or bool(self.offsets.any())

    @property
    def offset(self) -> int:
        """The offset in the middle of what is known, ns."""
        return int(self.offsets[len(self.offsets) // 2]) + self.shift


def align(store: Store, reference: int) -> list[Clock]:
    """A clock for each place of a recording, to the clock of place `reference`."""
    if not store.places:
        return []
    rows = Rows(store.table("ping")["place"])
    schedulers = _schedulers(store)
    hub = {p: _hub(store, p, rows.of(p), schedulers) for p in range(len(store.places))}

    def link(p: int, scheduler: int) -> _Link | None:
        return _link(store, _towards(store, rows.of(p), scheduler, schedulers))

    links = {p: link(p, scheduler) for p, scheduler in hub.items()}
    # A client may have several clusters, each of whose schedulers has a clock of its own.
    own = {scheduler: link(reference, scheduler) for scheduler in {*hub.values()}}
    home = {h: _to_hub({reference: mine}, reference, h) for h, mine in own.items()}
    return [_compose(store, p, links, hub, home[hub[p]], reference) for p in links]


@dataclass
class _Link:
    """Knots of `scheduler clock - own clock`."""

    knots: Ints
    offsets: Ints
    error: int


def _link(store: Store, mine: Ints) -> _Link | None:
    """From the rows of a place's round trips."""
    if not len(mine):
        return None
    table = store.table("ping")
    sent, received = table["sent"][mine], table["received"][mine]
    trip = received - sent
    middle = sent + trip // 2
    best = _best(sent, trip)
    best = best[np.argsort(middle[best], kind="stable")]
    best = best[_telling(middle[best], trip[best] // 2)]
    theta = table["peer_clock"][mine] - middle
    return _Link(middle[best], theta[best], int(trip[best].max()) // 2)


def _best(sent: Ints, trip: Ints) -> Ints:
    """Index of the smallest round trip in each window."""
    window = (sent - sent.min()) // WINDOW_NS
    order = np.lexsort((trip, window))
    ordered = window[order]
    first = np.append(True, ordered[1:] != ordered[:-1])
    found: Ints = order[first]
    return found


def _telling(knots: Ints, error: Ints) -> NDArray[np.bool_]:
    """Which knots, in order, know the offset there at least as well as any other may know it.

    While a loop is blocked for seconds the only round trip of a window may be one that took as
    long: what it is off by would bend the clock of all that happens then.
    """
    drifted = knots // DRIFT
    before = drifted + np.minimum.accumulate(error - drifted)
    after = np.minimum.accumulate((error + drifted)[::-1])[::-1] - drifted
    found: NDArray[np.bool_] = error <= np.minimum(before, after)
    return found


def _schedulers(store: Store) -> dict[str, int]:
    """The schedulers by address, the first of each; in the order of their first batch."""
    found: dict[str, int] = {}
    for i, place in enumerate(store.places):
        if place.role == "scheduler":
            found.setdefault(place.name, i)
    return found


def _hub(store: Store, p: int, mine: Ints, schedulers: dict[str, int]) -> int:
    """The scheduler that a place's round trips went to: by address, or the only one."""
    if store.places[p].role == "scheduler":
        return p
    peers = (store.strings[i] for i in np.unique(store.table("ping")["peer"][mine]))
    named = [schedulers[peer] for peer in peers if peer in schedulers]
    return min(named or schedulers.values(), default=-1)


def _towards(store: Store, mine: Ints, hub: int, schedulers: dict[str, int]) -> Ints:
    """The round trips of a place that went to a scheduler; all, where none is told by its name."""
    if len(schedulers) < 2 or hub < 0:
        return mine
    peer = store.table("ping")["peer"][mine]
    asked = {i: schedulers.get(store.strings[i], -1) for i in np.unique(peer).tolist()}
    there = [i for i, scheduler in asked.items() if scheduler == hub]
    return mine[np.isin(peer, there)] if max(asked.values(), default=-1) >= 0 else mine


def _to_hub(links: dict[int, _Link | None], p: int, hub: int) -> _Link:
    link = links.get(p)
    if p == hub or link is None:
        zero = np.zeros(1, np.int64)
        return _Link(zero, zero.copy(), 0 if p == hub else -1)
    return link


def _compose(
    store: Store,
    p: int,
    links: dict[int, _Link | None],
    hub: dict[int, int],
    home: _Link,
    reference: int,
) -> Clock:
    if _same_process(store, p, reference):
        return Clock()
    up = _to_hub(links, p, hub[p])
    if up.error < 0 or home.error < 0:
        return Clock(error=0 if _same_process(store, hub[p], reference) and p == hub[p] else -1)
    if _same_process(store, hub[p], reference):
        home = _Link(np.zeros(1, np.int64), np.zeros(1, np.int64), 0)
    knots = up.knots if p != hub[p] else home.knots + home.offsets
    at_hub = knots + (up.offsets if p != hub[p] else 0)
    back = np.interp(
        (at_hub - at_hub[0]).astype(float),
        (home.knots + home.offsets - at_hub[0]).astype(float),
        home.offsets.astype(float),
    )
    offsets = (at_hub - knots) - np.rint(back).astype(np.int64)
    clock = Clock(knots, offsets, up.error + home.error)
    return _snap(store, p, reference, clock)


def _snap(store: Store, p: int, reference: int, clock: Clock) -> Clock:
    """On one machine the monotonic clock is shared: an offset that may be zero is zero."""
    same_host = store.places[p].host == store.places[reference].host
    if same_host and bool((np.abs(clock.offsets) <= clock.error).all()):
        return Clock(error=clock.error)
    return clock


def _same_process(store: Store, p: int, q: int) -> bool:
    if p < 0 or q < 0:
        return False
    a, b = store.places[p], store.places[q]
    return (a.host, a.pid) == (b.host, b.pid)
