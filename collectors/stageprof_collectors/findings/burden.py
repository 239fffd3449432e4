"""What the messages of tasks carried of embedded objects, and which part of it one object is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.crowd import Bools

if TYPE_CHECKING:
    from stageprof_collectors.findings.embedded import Embedded
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

#: Bytes of messages in a second: so many pass where nothing else is in their way, on slow networks,
#: too. What takes longer than this is not the bytes' doing.
WAY_BYTES_S: Final = 50e6
#: Bytes in a second by which the time of a message is shared between its objects, beside the
#: seconds that pickling each took.
_SHARED_BYTES_S: Final = 100e6


class Burdens:
    """Which runs held which objects, and what all of them were in each run's message."""

    def __init__(self, recording: Recording, things: Iterable[Embedded]) -> None:
        self._groups, self._layered = recording.groups, recording.layered
        self._index = {name: i for i, name in enumerate(self._layered.names)}
        self._received = recording.timeline.runs["received"]
        layers, rows = len(self._index), len(self._groups.rows)
        self._rows = rows  # it grows by lines none of whose layers has run
        #: bytes, and seconds by which they are shared, of each layer and of each group of layers
        self._bytes = np.zeros(layers), np.zeros(rows)
        self._seconds = np.zeros(layers), np.zeros(rows)
        for thing in things:
            for i, found in enumerate(self._where(thing)):
                self._bytes[i][found] += thing.each_bytes
                self._seconds[i][found] += _seconds(thing)

    def holders(self, thing: Embedded) -> Bools:
        """Which runs held an object."""
        marks = np.zeros(len(self._bytes[0])), np.zeros(len(self._bytes[1]))
        for mark, found in zip(marks, self._where(thing), strict=True):
            mark[found] = 1.0
        held: Bools = self._of_runs(marks) > 0
        return held

    def part(self, thing: Embedded) -> Floats:
        """Of the time of each run's message the part that is an object's, if the run holds it."""
        whole = self._of_runs(self._seconds)
        return np.minimum(1.0, _seconds(thing) / np.maximum(whole, 1e-12))

    def under_way(self, start: Ints, stop: Ints) -> Floats:
        """Bytes of objects in all messages that arrived in each (start, stop], ns."""
        nbytes = self._of_runs(self._bytes)
        rows = np.flatnonzero(nbytes)
        rows = rows[np.argsort(self._received[rows], kind="stable")]
        sums = np.concatenate([[0.0], np.cumsum(nbytes[rows])])
        first, last = (np.searchsorted(self._received[rows], t, "right") for t in (start, stop))
        arrived: Floats = sums[last] - sums[first]
        return arrived

    def _of_runs(self, values: tuple[Floats, Floats]) -> Floats:
        """The value of each run's layer and group."""
        if not len(self._layered.of):
            return np.zeros(0)
        found: Floats = values[0][self._layered.of] + values[1][self._groups.of_run]
        return found

    def _where(self, thing: Embedded) -> tuple[list[int], list[int]]:
        """The layers that held an object; groups of layers for those which are not known."""
        known = [self._index[name] for name in thing.layers if name in self._index]
        other = [name for name in thing.layers if name not in self._index]
        rows = {row for name in other for row in self._groups.named(name)}
        if other and not known and not any(map(self._groups.tasks, rows)):
            # fused: what was made at its line
            rows = set(self._groups.at(f"{thing.used_file}:{thing.used_line}"))
        return known, [row for row in rows if 0 < row < self._rows]


def _seconds(thing: Embedded) -> float:
    """Seconds of one message by which an object's part of it is known."""
    pickled = max(0.0, thing.total_s - thing.dump_s - thing.load_s)
    return pickled / max(thing.tasks, 1) + thing.each_bytes / _SHARED_BYTES_S
