"""Groups of xarray's arrays that were reduced one by one, and the runs that are of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.indexing import POSITIONS
from stageprof_collectors.findings.crowd import Bools
from stageprof_collectors.text import number
from stageprof_runtime.probes.groups import OFF, ONE_BY_ONE

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: What flox has for each chunk: a task that reduces it, one in the combining of those, and groups
#: that lie in a few chunks only are cut out of them first.
_EACH: Final = 3


@dataclass(frozen=True)
class Reduction:
    """One of them: how many groups of how many chunks, at a line of the user's."""

    groups: int
    pieces: int
    file: str
    line: int
    #: the user said that flox is not to be used
    off: bool

    @property
    def at(self) -> str:
        """The line, as a text."""
        return f"{self.file}:{self.line}"


class Reductions:
    """Those of a recording, and the rows of the runs that belong to them."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        labels = (label for _, _, label in recording.timeline.marks(ONE_BY_ONE))
        self.all = [found for label in labels if (found := _read(label)) is not None]

    @property
    def most(self) -> Reduction:
        """The one of most groups."""
        return max(self.all, key=lambda reduction: reduction.groups)

    @property
    def tasks_of_flox(self) -> int:
        """About so many tasks would be left of them."""
        return sum(_EACH * reduction.pieces + 1 for reduction in self.all)

    def rows(self) -> Ints:
        """Runs of layers of their lines, what is done to each group then, and what only they need.

        What is done then is in layers of as many tasks as there are groups; the first of it is
        fused with them. What they need is how to slice: of no line, or of that of what is fused.
        """
        groups = self._recording.groups
        lines = {reduction.at for reduction in self.all}
        there = np.array([f"{row.file}:{row.line}" in lines for row in groups.rows], np.bool_)
        lineless = np.array([not row.file for row in groups.rows], np.bool_)[groups.of_run]
        lineless |= self._recording.layered.prefixed(POSITIONS.__contains__)
        runs = self._followed(there[groups.of_run], lineless)
        found: Ints = np.flatnonzero(runs | (lineless & self._only(runs)))
        return found

    def _followed(self, runs: Bools, lineless: Bools) -> Bools:
        """With the runs of such layers that need these, and nothing else that has a line."""
        needs, of_run = self._recording.timeline.depends, self._recording.groups.of_run
        user, n = needs.user, len(runs)
        each = (np.bincount(of_run, minlength=1) * 2 >= self.most.groups)[of_run]
        while True:
            theirs = np.bincount(user[runs[needs.on]], minlength=n) > 0
            others = np.bincount(user[~(runs | lineless)[needs.on]], minlength=n) > 0
            more = each & theirs & ~others & ~runs
            if not more.any():
                return runs
            runs = runs | more

    def _only(self, runs: Bools) -> Bools:
        """Which runs some of these need, and no other run."""
        needs = self._recording.timeline.depends
        by_all = np.bincount(needs.on, minlength=len(runs))
        by_these = np.bincount(needs.on[runs[needs.user]], minlength=len(runs))
        only: Bools = (by_these == by_all) & (by_these > 0)
        return only


def _read(label: str) -> Reduction | None:
    """What a mark says; None if it is not what a probe of ours writes."""
    why, *said = label.split(" ", 3)
    if len(said) != 3:
        return None
    file, _, line = said.pop().rpartition(":")
    groups, pieces, at = map(number, (*said, line))
    if min(groups, pieces, at) < 0:
        return None
    return Reduction(groups, pieces, file, at, off=why == OFF)
