"""What kind of work tasks did, by prefix and by the user's line: the rows of STACK, summed.

A share of looks is a share of time give or take chance: with n looks one of s is known to about
the root of s (1 - s) / n. Rules take that into the interval that they predict. Bytecode runs only
with the GIL: where it was watched, no share is larger than the time with it or in the queue for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.replay.cost import costs_of_runs
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.storage.rows import Rows
from stageprof_collectors.text import line_of
from stageprof_runtime.stack import CALL, PYTHON, SMALL
from stageprof_runtime.stage import STEP

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Standard errors around a share that a prediction allows for: nine of ten true shares are within.
ERRORS: Final = 1.65
#: Kinds of looks that are certain to be at bytecode.
CERTAIN: Final = (PYTHON, SMALL)
#: Looks at a call that count as bytecode, for each that is certain to be: with a call in each round
#: of a loop the two are alike, with three calls they are three to one.
CALLS: Final = 3
#: A part of their time that tasks may have had the GIL beyond what the watch saw of them.
SLACK: Final = 0.03
#: Tasks are bounded by what was watched of them if that is at least so much of their time.
WATCHED: Final = 0.5
_COMPUTE: Final = frozenset({STEP["compute"]})


@dataclass(frozen=True)
class Look:
    """Looks at tasks of one prefix at one line that saw the same kind of work."""

    prefix: str
    file: str
    line: int
    function: str
    how: str
    #: the user's outermost function
    entry: str
    count: int
    seconds: float

    @property
    def work(self) -> tuple[str, str, str]:
        """The function that tasks of a prefix were in: prefix, file, function."""
        return self.prefix, self.file, self.function


@dataclass(frozen=True)
class Share:
    """Part of the time of a prefix's tasks, at least and at most, and the best guess."""

    low: float
    middle: float
    high: float


def share_of(part: float, looks: int) -> Share:
    """A part of so many looks, and by how much it may be off by chance."""
    off = ERRORS * sqrt(max(part * (1 - part), 0.25 / looks) / looks)
    return Share(max(0.0, part - off), part, min(1.0, part + off))


class Looks:
    """All looks of a recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.all: list[Look] = list(_read(recording))

    def __bool__(self) -> bool:
        return bool(self.all)

    @cached_property
    def _by_prefix(self) -> dict[str, tuple[int, float]]:
        """Looks and seconds of each prefix."""
        total: dict[str, tuple[int, float]] = {}
        for look in self.all:
            count, seconds = total.get(look.prefix, (0, 0.0))
            total[look.prefix] = count + look.count, seconds + look.seconds
        return total

    def shares(self, looks: Iterable[Look]) -> dict[str, Share]:
        """What part these looks are of those at each prefix's tasks."""
        seconds: dict[str, float] = {}
        for look in looks:
            seconds[look.prefix] = seconds.get(look.prefix, 0.0) + look.seconds
        return {prefix: self._share(prefix, own) for prefix, own in seconds.items()}

    def _share(self, prefix: str, seconds: float) -> Share:
        count, whole = self._by_prefix[prefix]
        return share_of(min(1.0, seconds / whole) if whole > 0 else 0.0, count)

    def interpreted(self, looks: Iterable[Look]) -> dict[str, Share]:
        """As `shares`, of work that is bytecode: no more than the tasks had of the GIL."""
        found = self.shares(looks)
        for prefix, (low, middle, high) in ((p, astuple(share)) for p, share in found.items()):
            most = self._with_gil(prefix)
            found[prefix] = Share(min(low, most), min(middle, most), min(high, most))
        return found

    def at_most(self, shares: Mapping[str, Share], looks: Iterable[Look]) -> dict[str, Share]:
        """The same shares, if all that these looks saw with the GIL may belong to them."""
        whole = self.interpreted(looks)
        return {p: replace(share, high=whole[p].high) for p, share in shares.items()}

    def _with_gil(self, prefix: str) -> float:
        """The part of its tasks' time with the GIL or in the queue for it; 1 if nobody watched."""
        timeline, runs = self._recording.timeline, self._recording.timeline.runs
        mine = self._rows(prefix)
        seen = mine[timeline.gil.seen[mine]]
        length = runs["stop"] - runs["start"]
        if not length[seen].sum() > WATCHED * length[mine].sum():
            return 1.0
        had = (timeline.gil.runs.held + timeline.gil.runs.waited)[seen].sum()
        return min(1.0, float(had / length[seen].sum()) + SLACK)

    def holding(self, prefixes: Iterable[str]) -> dict[str, float]:
        """`gil_hold_s`: for how long tasks of these prefixes had the GIL, if it was watched."""
        gil = self._recording.timeline.gil
        return {"gil_hold_s": gil.runs.held[self.runs(prefixes)].sum() / 1e9} if gil else {}

    def python(self) -> list[Look]:
        """Looks at bytecode that the user can do without: certain ones, and likely ones.

        Those at calls count as far as certain ones of the same function make them likely.
        """
        certain: dict[tuple[str, str, str], float] = {}
        calls: dict[tuple[str, str, str], float] = {}
        for look in self.all:
            into = certain if look.how in CERTAIN else calls if look.how == CALL else {}
            into[look.work] = into.get(look.work, 0.0) + look.seconds
        believed = {at: min(1.0, CALLS * certain.get(at, 0.0) / s) for at, s in calls.items() if s}
        return [_weighed(look, believed) for look in self.all if look.how in (CALL, *CERTAIN)]

    # -- what it comes to -----------------------------------------------------------------------

    def runs(self, prefixes: Iterable[str]) -> NDArray[np.bool_]:
        """Which runs are of these prefixes."""
        found = np.zeros(len(self._recording.timeline.runs["run"]), np.bool_)
        for prefix in prefixes:
            found[self._rows(prefix)] = True
        return found

    def _rows(self, prefix: str) -> Ints:
        numbers, rows = self._of_prefix
        return rows.of(numbers.get(prefix, -1))

    @cached_property
    def _of_prefix(self) -> tuple[dict[str, int], Rows]:
        names, kinds = self._recording.layered.kinds()
        return {name: i for i, name in enumerate(names)}, Rows(kinds)

    @cached_property
    def _costs(self) -> NDArray[np.float64]:
        return costs_of_runs(self._recording, _COMPUTE)

    def busy(self, shares: Mapping[str, Share]) -> float:
        """Seconds of task time that these shares are, over all runs."""
        runs = self._recording.timeline.runs
        length = (runs["stop"] - runs["start"]) / 1e9
        return float((length * self._factor(shares, lambda share: share.middle)).sum())

    def cost(self, shares: Mapping[str, Share]) -> float:
        """Seconds of the blocking account that these shares are."""
        return sum(
            share.middle * float(self._costs[self._rows(prefix)].sum())
            for prefix, share in shares.items()
        )

    def saving(self, shares: Mapping[str, Share], gain: tuple[float, float]) -> tuple[float, float]:
        """Seconds saved if of this work a part from `gain[0]` to `gain[1]` were gone."""
        replay = self._recording.replay
        least = 1 - gain[0] * self._factor(shares, lambda share: share.low)
        most = 1 - gain[1] * self._factor(shares, lambda share: share.high)
        low, high = replay.saving(Change(compute=least))[0], replay.saving(Change(compute=most))[1]
        return min(low, high), high

    def _factor(
        self, shares: Mapping[str, Share], part: Callable[[Share], float]
    ) -> NDArray[np.float64]:
        factor = np.zeros(len(self._recording.timeline.runs["run"]))
        for prefix, share in shares.items():
            factor[self._rows(prefix)] = part(share)
        return factor


def _weighed(look: Look, believed: Mapping[tuple[str, str, str], float]) -> Look:
    if look.how != CALL:
        return look
    part = believed.get(look.work, 0.0)
    return replace(look, seconds=look.seconds * part)


def _read(recording: Recording) -> Iterable[Look]:
    table, strings = recording.store.table("stack"), recording.store.strings
    total: dict[tuple[int, ...], list[int]] = {}
    names = ("name", "label", "how", "variable", "count", "total")
    for *which, count, ns in zip(*(table[n].tolist() for n in names), strict=True):
        sums = total.setdefault(tuple(which), [0, 0])
        sums[0] += count
        sums[1] += ns
    for which_, (count, ns) in total.items():
        name, label, how, entry = (strings[i] for i in which_)
        yield Look(name, *place(label), how, entry, count, ns / 1e9)


def place(label: str) -> tuple[str, int, str]:
    """File, line and function of "file:line function"; ("", 0, "") where it is none."""
    where, _, function = label.rpartition(" ")
    file, line = line_of(where)
    return (file, line, function) if file else ("", 0, "")
