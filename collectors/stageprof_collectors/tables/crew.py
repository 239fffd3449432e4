"""The workers of a run as a crew: who was there when, with how many threads, on which host."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.thread import MOST
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.tables.fact import usable
from stageprof_collectors.text import number
from stageprof_runtime.event import STATUS

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Workers that were seen within this long of the first were there when recording began, ns: the
#: scheduler names all that it has in one go.
TOGETHER = 50_000_000
_DONE = STATUS.index("memory")


class Member(NamedTuple):
    """A worker's stay: its address, host, threads, CPUs that it may use (0: unknown).

    `since` and `until`: when it came and went, aligned ns, cut to the region.
    """

    address: str
    host: str
    threads: int
    cpus: int
    since: int
    until: int


class Crew:
    """All workers of a recording, and what their runs took."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._t = recording.timeline

    @cached_property
    def members(self) -> list[Member]:
        """In the order in which they came; one that came back, to its old address, once more."""
        start, stop, facts = self._t.region.start, self._t.region.stop, self._facts
        left: defaultdict[str, list[int]] = defaultdict(list)
        for t, _, label in sorted(self._t.marks("worker left")):
            left[label].append(t)
        found: list[Member] = []
        until: dict[str, int] = {}
        for t, _, label in sorted(self._t.marks("worker seen")):
            address, _, rest = label.partition(" ")
            threads = number(rest.partition(" ")[0])
            if 0 < threads < MOST and until.get(address, t) <= t:
                host, cpus = facts.get(address, (host_of(address), 0))
                went = left[address]
                next_ = bisect_right(went, t)
                until[address] = went[next_] if next_ < len(went) else stop
                found.append(Member(address, host, threads, cpus, t, min(stop, until[address])))
        return [m for m in found if m.since < stop and m.until > start]

    @cached_property
    def fullest(self) -> list[Member]:
        """The workers that were there at the instant at which most were."""
        came = np.sort([member.since for member in self.members])
        went = np.sort([member.until for member in self.members])
        # At the instant at which each came: those who had come by then but those who had gone.
        there = np.arange(1, len(came) + 1) - np.searchsorted(went, came, side="right")
        at = int(came[np.argmax(there)]) if len(came) else 0
        return [member for member in self.members if member.since <= at < member.until]

    @property
    def threads(self) -> int:
        """Threads of all workers that were there at once."""
        return sum(member.threads for member in self.fullest)

    def on_host(self, host: str) -> list[Member]:
        """The workers of a host that were there at once."""
        return self._by_host.get(host, [])

    @cached_property
    def _by_host(self) -> dict[str, list[Member]]:
        """The workers that were there at once, by their hosts."""
        found: defaultdict[str, list[Member]] = defaultdict(list)
        for member in self.fullest:
            found[member.host].append(member)
        return dict(found)

    @property
    def useful(self) -> int:
        """Threads that can run at once: on no host more than it has CPUs."""
        total = 0
        for mine in self._by_host.values():
            cpus = max(member.cpus for member in mine)
            threads = sum(member.threads for member in mine)
            total += min(threads, cpus) if cpus else threads
        return total

    @cached_property
    def begun(self) -> int:
        """When the first task of the region's began, ns; -1 if none did."""
        start = self._t.runs["start"][self.rows]
        return int(start.min()) if len(start) else -1

    @cached_property
    def rows(self) -> Ints:
        """Rows of the runs that workers did within the region.

        Of one that its worker did not tell of (it was killed before) only the time that the
        scheduler saw is known.
        """
        runs, region = self._t.runs, self._t.region
        done = (runs["seen"] == 1) | (runs["status"] == _DONE)
        done &= (runs["stop"] > region.start) & (runs["start"] < region.stop)
        return np.flatnonzero(done & self._ours)

    @cached_property
    def _ours(self) -> NDArray[np.bool_]:
        """Whether each run was one of theirs."""
        worker, words = self._t.runs["worker"], self._t.store.strings
        known = {member.address for member in self.members}
        return np.array([word in known for word in words], np.bool_)[worker]

    @cached_property
    def going_on(self) -> Ints:
        """Rows of the runs that workers were given and had not ended when the recording did."""
        runs = self._t.runs
        on = (runs["finished"] == 0) & (runs["seen"] == 0) & self._ours
        return np.flatnonzero(on & (runs["start"] < self._t.region.stop))

    @property
    def going_on_s(self) -> float:
        """Seconds that they have had these in sum; what of it was work, no worker told yet."""
        return float((self._t.region.stop - self._t.runs["start"][self.going_on]).sum()) / 1e9

    @cached_property
    def member_of(self) -> Ints:
        """The index in `members` of the worker of each run; -1 for others."""
        words = self._t.store.strings
        index = {member.address: i for i, member in enumerate(self.members)}
        numbers = np.array([index.get(word, -1) for word in words], np.int64)
        found: Ints = numbers[self._t.runs["worker"]]
        return found

    @cached_property
    def late(self) -> list[Member]:
        """Workers that came after the first task had begun, and not in place of one that went."""
        first = min((member.since for member in self.members), default=0)
        since = max(self.begun, first + TOGETHER)
        came = [m for m in self.members if m.since > since] if self.begun >= 0 else []
        went = deque(sorted(m.until for m in self.members))
        found = []
        for member in came:
            if went and went[0] <= member.since:
                went.popleft()
            else:
                found.append(member)
        return found

    @cached_property
    def _facts(self) -> dict[str, tuple[str, int]]:
        """Host of each worker that was observed, and the CPUs that it may use."""
        store = self._t.store
        found: dict[str, tuple[str, int]] = {}
        allowed = usable(store)
        for i, place in enumerate(store.places):
            if place.role == "worker":
                cpus = allowed.get(i, 0)
                found[place.name] = place.host, int(min(cpus, MOST)) if cpus > 0 else 0
        return found


def host_of(address: str) -> str:
    """The host in a worker's address."""
    return address.rpartition("://")[2].rpartition(":")[0]
