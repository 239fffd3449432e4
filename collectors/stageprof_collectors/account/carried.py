"""What messages carried for each layer: the rows of SHARE, summed and in time.

A task or value that took long has a row of its own, which says when; those stand for the pieces of
time in which they fell. Short ones are sums over half a second.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from functools import cached_property
from typing import Final

from stageprof_collectors.account.groups import Owners, Parts
from stageprof_collectors.account.timeline import Timeline
from stageprof_runtime.ring import SHORT_NS

#: Stands for any step.
ANY: Final = -1


class Carried:
    """The shares of one timeline by row of the table of layers."""

    def __init__(self, timeline: Timeline, owners: Owners) -> None:
        #: step -> row -> ns, bytes, how many
        self.ns: defaultdict[int, defaultdict[int, float]] = _table()
        self.nbytes: defaultdict[int, defaultdict[int, float]] = _table()
        self.count: defaultdict[int, defaultdict[int, float]] = _table()
        #: place -> (start, stop, step, rows), in order of their ends
        self._long: defaultdict[int, list[tuple[int, int, int, Parts]]] = defaultdict(list)
        self._read(timeline, owners)

    def _read(self, timeline: Timeline, owners: Owners) -> None:
        table, strings = timeline.read("share", "t"), timeline.store.strings
        names = ("t", "place", "step", "name", "count", "total", "nbytes")
        for t, place, step, name, count, total, nbytes in zip(
            *(table[n].tolist() for n in names), strict=True
        ):
            rows = owners.named(strings[name])
            whole = sum(rows.values()) or 1.0
            for row, part in rows.items():
                self.ns[step][row] += total * part / whole
                self.nbytes[step][row] += nbytes * part / whole
                self.count[step][row] += count * part / whole
            if count == 1 and total >= SHORT_NS and rows:
                self._long[place].append((t - total, t, step, rows))

    def within(self, place: int, start: int, stop: int, step: int) -> list[tuple[float, Parts]]:
        """What long ones of a step (or `ANY`) cover of [start, stop): ns, and whose."""
        spans = self._ordered.get(place, [])
        found: list[tuple[float, Parts]] = []
        i = bisect_right(spans, start, key=lambda span: span[1])
        longest = self._longest.get(place, 0)
        while i < len(spans) and spans[i][1] - longest < stop:
            a, b, what, rows = spans[i]
            covered = min(b, stop) - max(a, start)
            if covered > 0 and step in (ANY, what):
                found.append((covered, rows))
            i += 1
        whole = sum(ns for ns, _ in found)
        scale = min(1.0, (stop - start) / whole) if whole else 1.0
        return [(ns * scale, rows) for ns, rows in found]

    @cached_property
    def _ordered(self) -> dict[int, list[tuple[int, int, int, Parts]]]:
        return {place: sorted(spans, key=lambda s: s[1]) for place, spans in self._long.items()}

    @cached_property
    def _longest(self) -> dict[int, int]:
        return {p: max(b - a for a, b, *_ in spans) for p, spans in self._long.items()}


def _table() -> defaultdict[int, defaultdict[int, float]]:
    return defaultdict(lambda: defaultdict(float))
