"""Where tasks go over the groups of a frame one by one, and what part of their time that takes.

pandas tells how many groups it gave out and of how many rows; the stacks tell how long the tasks
were at it. What other libraries do for a group (a fit, a request) is no part of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.profiles.inside import NONE, Seen, kinds_of
from stageprof_collectors.profiles.looks import Share, place
from stageprof_collectors.profiles.nodes import Frame

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Functions of pandas that call another one for each group, and put together what that gives.
_CALLERS: Final = frozenset(
    {"_python_apply_general", "_python_agg_general", "_transform_general", "filter"}
)
_PANDAS: Final = "/pandas/core/groupby/"
#: Libraries whose work on a group is what working on all of them at once saves.
_SAVED: Final = ("/pandas/", "/numpy/", "/dask/", "/distributed/")
_PACKAGES: Final = ("site-packages", "dist-packages")
#: Loops of the user's that are looked for, those of most groups.
MOST: Final = 100
#: A function is named beside others if it takes so much of what they take together.
PART: Final = 0.2


class Loop(NamedTuple):
    """A loop of the user's over groups; all of it is empty where pandas calls a function."""

    file: str
    first: int
    last: int
    function: str

    def holds(self, frame: Frame) -> bool:
        """Whether a frame stands in it."""
        mine = bool(self.file) and frame.file == self.file
        return mine and self.first <= frame.line <= self.last


#: pandas calls a function for each group.
CALLS: Final = Loop("", 0, 0, "")


class Called(NamedTuple):
    """A function of the user's, and the line in it that was seen most."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class Grouping:
    """Groups that tasks of one prefix go over one by one in one place.

    Attributes:
        loop: the user's, or `CALLS`.
        functions: those that are called for each group, what takes most first; none if none
            was seen. A loop has one, which it is in.
        groups, rows: how many, in all tasks.
        share: the part of the tasks' time.
        inside: lines of the user's that were seen running there, "file:line".
    """

    loop: Loop
    functions: tuple[Called, ...]
    groups: int
    rows: int
    prefix: str
    share: Share
    inside: frozenset[str]


def groupings(recording: Recording, least: int) -> list[Grouping]:
    """Where tasks go over groups, as far as at least so many looks saw them at it."""
    given = _given(recording)
    if not given or not recording.store.rows("flame"):
        return []
    loops = list(dict.fromkeys(loop for loop, _ in given))
    stacks = _Stacks(recording, loops)
    found = []
    for number, shares in stacks.parts(stacks.kinds, least).items():
        loop = loops[number]
        for prefix, share in shares.items():
            if (loop, prefix) in given:
                groups, rows = given[loop, prefix]
                called, lines = stacks.mine(prefix, number)
                if loop.file:
                    called = (Called(loop.function, loop.file, loop.first),)
                found.append(Grouping(loop, called, groups, rows, prefix, share, lines))
    return found


def _given(recording: Recording) -> dict[tuple[Loop, str], list[int]]:
    """Groups and rows that pandas gave out, by the loop that they were for and the prefix."""
    table, strings = recording.store.table("grouped"), recording.store.strings
    found: defaultdict[tuple[Loop, str], list[int]] = defaultdict(lambda: [0, 0])
    names = ("name", "label", "line", "count", "total")
    for name, label, last, groups, rows in zip(*(table[n].tolist() for n in names), strict=True):
        if groups > 0 and rows >= 0:
            file, first, function = place(strings[label])
            loop = Loop(file, first, last, function) if file else CALLS
            total = found[loop, strings[name]]
            total[0] += groups
            total[1] += rows
    most = sorted(found.items(), key=lambda item: -item[1][0])[:MOST]
    return dict(most)


def _which(frame: Frame, loops: list[Loop]) -> int:
    """The number of the loop that begins at a frame, or in which it stands."""
    calls = frame.name.rpartition(".")[2] in _CALLERS and _PANDAS in frame.path
    return next(
        (n for n, at in enumerate(loops) if at.holds(frame) or (calls and at == CALLS)), NONE
    )


def _is_others(frame: Frame) -> bool:
    installed = any(part in frame.path for part in _PACKAGES)
    return installed and not any(part in frame.path for part in _SAVED)


class _Stacks(Seen):
    """Where tasks were seen, by the loop that they were inside of."""

    def __init__(self, recording: Recording, loops: list[Loop]) -> None:
        super().__init__(recording)
        self._nodes = recording.nodes
        frames = set(self._nodes.frames)
        begins = {frame: _which(frame, loops) for frame in frames}
        #: of each node the number of its loop
        self.kinds = kinds_of(self._nodes, begins, {f for f in frames if _is_others(f)})

    def mine(self, prefix: str, number: int) -> tuple[tuple[Called, ...], frozenset[str]]:
        """The user's functions that were seen right within a loop, and all lines seen there."""
        called: Counter[Called] = Counter()
        lines: set[str] = set()
        for row in np.flatnonzero(self.kinds[self.at] == number).tolist():
            if self._strings[int(self.prefix[row])] == prefix:
                own = [f for f in self._within(int(self.at[row])) if f.is_users]
                lines.update(f"{frame.file}:{frame.line}" for frame in own)
                if own:
                    called[_called(own[0])] += int(self.count[row])
        return _functions(called), frozenset(lines)

    def _within(self, node: int) -> list[Frame]:
        """The frames of a stack from where it enters a loop, inward."""
        found: list[Frame] = []
        while node >= 0 and self.kinds[node] != NONE:
            found.append(self._nodes.frames[node])
            node = int(self._nodes.parent[node])
        return found[::-1]


def _called(frame: Frame) -> Called:
    return Called(frame.name.rpartition(".")[2], frame.file, frame.line)


def _functions(called: Counter[Called]) -> tuple[Called, ...]:
    """Each function once, of the lines in it that the looks were at; without those of few looks."""
    looks: Counter[tuple[str | int, ...]] = Counter()
    most: dict[tuple[str | int, ...], Called] = {}
    for at, count in called.most_common():
        function = at if at.name == "<lambda>" else at[:2]
        looks[function] += count
        most.setdefault(function, at)
    least = PART * called.total()
    return tuple(most[function] for function, count in looks.most_common() if count >= least)
