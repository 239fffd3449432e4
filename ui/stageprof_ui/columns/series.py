"""Numbers of processes over time: memory, CPU, rates, queues, contention for the GIL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Ints, present
from stageprof_collectors.recording import Recording
from stageprof_collectors.tables.fact import sound
from stageprof_collectors.text import safe

Floats = NDArray[np.float64]
#: What a number is: bytes, bytes a second, percent, a part of one, a count, or a mean of counts.
Unit = Literal["size", "rate", "percent", "share", "count", "mean"]

#: Points of a line that are sent to the browser; no picture is wider.
POINTS: Final = 1_200
#: Processes of one kind that are drawn; more lines than that nobody can follow.
LINES: Final = 12


@dataclass(frozen=True)
class Series:
    """A number of one process over time: seconds since the start, and values in order of them."""

    #: index in `Recording.store.places`
    place: int
    t: Floats
    value: Floats

    @property
    def peak(self) -> float:
        """The highest value."""
        return float(self.value.max(initial=0.0))

    @property
    def moves(self) -> bool:
        """Whether there is a line to draw: one sample is none."""
        return len(self.t) > 1

    def thinned(self, most: int = POINTS) -> tuple[Floats, Floats]:
        """At most so many points, the highest and the lowest of each stretch among them."""
        n = len(self.t)
        if n <= most:
            return self.t, self.value
        each = -(-n // max(most // 2, 1))
        rows = np.minimum(np.arange(-(-n // each) * each), n - 1).reshape(-1, each)
        found = np.stack([self.value[rows].argmin(axis=1), self.value[rows].argmax(axis=1)])
        keep = np.unique(rows[np.arange(len(rows)), found])
        return self.t[keep], self.value[keep]


@dataclass(frozen=True)
class Process:
    """A process by what it is called; no two are called alike."""

    role: str
    label: str
    #: the same for those that are parts of one process of the system, as in a `LocalCluster`
    pid: tuple[str, int]


class Samples:
    """The samples of a recording by name and process."""

    def __init__(self, recording: Recording) -> None:
        #: what workers are called, by their addresses
        self.names = names(recording)
        self.processes = processes(recording, self.names)
        table = recording.timeline.read("sample", "t")
        sane = sound(table["value"])
        name, place, t = (table[column][sane] for column in ("name", "place", "t"))
        order = np.lexsort((t, place, name))
        strings = recording.store.strings
        self._code: dict[str, int] = {strings[i]: i for i in present(name)}
        self._name, self._place = name[order], place[order]
        self._t = (t[order] - recording.timeline.region.start) / 1e9
        self._value = table["value"][sane][order].astype(np.float64)

    def of(self, name: str) -> list[Series]:
        """The series of a name, one for each process that has it."""
        if name not in self._code:
            return []
        a, b = np.searchsorted(self._name, [self._code[name], self._code[name] + 1])
        cuts = a + np.flatnonzero(np.diff(self._place[a:b], prepend=-1))
        return [self._series(int(i), int(j)) for i, j in pairwise([*cuts, b])]

    def _series(self, a: int, b: int) -> Series:
        return Series(int(self._place[a]), self._t[a:b], self._value[a:b])

    def label(self, place: int) -> str:
        """What a process is called."""
        return self.processes[place].label

    def role(self, place: int) -> str:
        """What part a process plays."""
        return self.processes[place].role


def names(recording: Recording) -> dict[str, str]:
    """What workers are called, by their addresses; "" where they have no name."""
    frame = recording.workers()
    return dict(zip(frame["worker"], frame["name"], strict=True))


def processes(recording: Recording, names: dict[str, str]) -> list[Process]:
    """All processes in the order of `Recording.store.places`."""
    places = recording.store.places
    own = (worker_label(p.name, names) if p.role == "worker" else safe(p.role) for p in places)
    return [
        Process(place.role, label, (place.host, place.pid))
        for place, label in zip(places, numbered(own), strict=True)
    ]


def numbered(names: Iterable[str]) -> list[str]:
    """The same names, each once: from the second of a name on with a number that none has."""
    found: dict[str, None] = {}
    seen: Counter[str] = Counter()
    for name in names:
        label = name
        while label in found:
            seen[name] += 1
            label = f"{name} ({seen[name] + 1})"
        found[label] = None
    return list(found)


def worker_label(address: str, names: dict[str, str], limit: int = 60) -> str:
    """What a worker is called: its name where it has one, else its address."""
    name = names.get(address, "")
    return safe(f"worker {name}" if name else address, limit=limit)


def natural(name: str) -> tuple[str, float, str]:
    """Order by which worker 2 comes before worker 10."""
    head, _, tail = name.rpartition(" ")
    return (head, float(tail), "") if tail.isdecimal() else (head, float("inf"), tail)


def highest(series: Iterable[Series], most: int = LINES) -> list[Series]:
    """Those with the highest values, highest first."""
    return sorted(series, key=lambda one: -one.peak)[:most]


def at_peak(series: Sequence[Series], count: int) -> Ints:
    """The highest value of each of so many processes; 0 of those without any."""
    out = np.zeros(count, np.int64)
    for one in series:
        out[one.place] = max(out[one.place], int(min(one.peak, 2**62)))
    return out
