"""The stage account: where the region's wall time went, and how much work was done.

`wall` is the blocking account: each instant of the region belongs to one step, the one that the
caller was in or waiting for; the steps sum to the region. `busy` is the total work: seconds in a
step summed over all processes and threads, a nested span subtracted from the span around it.
`waited` is what tasks waited (for the scheduler, a message, a thread); it is nobody's work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import pandas as pd

from stageprof_runtime.stage import CODE, Stage, stage_of, step_name


@dataclass
class Entry:
    """One line of the account: ns of wall, busy and waited time, events, and bytes."""

    wall: int = 0
    busy: int = 0
    waited: int = 0
    events: int = 0
    nbytes: int = 0

    def add(self, other: Entry) -> None:
        """Add another's figures to these."""
        self.wall += other.wall
        self.busy += other.busy
        self.waited += other.waited
        self.events += other.events
        self.nbytes += other.nbytes


#: A share of compute, not beside it: no sum has both.
INCLUDED: Final = CODE["execution/gil.wait"]

#: Entries by (step code, place): its index, or what `somewhere` gives.
Entries = defaultdict[tuple[int, int], Entry]

#: Roles of what is known to have been at some place, but not at which.
_SOMEWHERE: Final = ("", "scheduler", "worker")


def somewhere(role: str) -> int:
    """What stands for a place of that role that is not known."""
    return -1 - _SOMEWHERE.index(role)


def role_of(place: int, roles: Sequence[str]) -> str:
    """The role of a place, which may be unknown."""
    return roles[place] if place >= 0 else _SOMEWHERE[-1 - place]


@dataclass
class Account:
    """Entries by (step code, role), and the wall time that they share out, ns.

    Accounts add up: the account of two regions is the sum of theirs.
    """

    wall: int = 0
    entries: defaultdict[tuple[int, str], Entry] = field(default_factory=lambda: defaultdict(Entry))

    @classmethod
    def of(cls, wall: int, entries: Mapping[tuple[int, int], Entry], roles: Sequence[str]) -> Self:
        """That of entries by place, each of these having a role."""
        account = cls(wall)
        for (step, place), entry in entries.items():
            account.entries[step, role_of(place, roles)].add(entry)
        return account

    def __add__(self, other: Account) -> Account:
        total = Account(self.wall + other.wall)
        for account in (self, other):
            for key, entry in account.entries.items():
                total.entries[key].add(entry)
        return total

    def stages(self) -> pd.DataFrame:
        """One row for each of the six stages, `outside` and `unexplained`.

        Columns: wall_s, share (of the wall time), busy_s, events, bytes.
        """
        sums = {stage: Entry() for stage in Stage}
        for (step, _), entry in self.entries.items():
            if step != INCLUDED:
                sums[stage_of(step)].add(entry)
        rows = [self._row(entry) for entry in sums.values()]
        frame = pd.DataFrame(rows, index=pd.Index([str(s) for s in sums], name="stage"))
        return frame[["wall_s", "share", "busy_s", "events", "bytes"]]

    def steps(self) -> pd.DataFrame:
        """One row for each step and role that anything is known of, costliest first.

        Columns: stage, step, role, wall_s, share, busy_s, waited_s, events, bytes. `gil.wait` is
        a share of `compute`, and its `busy_s` is counted there, too.
        """
        rows = [
            {"stage": str(stage_of(step)), "step": step_name(step), "role": role, **self._row(e)}
            for (step, role), e in self.entries.items()
            if e != Entry()
        ]
        columns = ["stage", "step", "role", *_COLUMNS]
        frame = pd.DataFrame(rows, columns=columns)
        order = ["wall_s", "busy_s", "waited_s"]
        return frame.sort_values(order, ascending=False, ignore_index=True)

    def _row(self, entry: Entry) -> dict[str, float | int]:
        return {
            "wall_s": entry.wall / 1e9,
            "share": entry.wall / self.wall if self.wall else 0.0,
            "busy_s": entry.busy / 1e9,
            "waited_s": entry.waited / 1e9,
            "events": entry.events,
            "bytes": entry.nbytes,
        }


_COLUMNS = ("wall_s", "share", "busy_s", "waited_s", "events", "bytes")


def check(account: Account) -> int:
    """By how many ns the lines miss the wall time; 0 for every account that was made here."""
    return account.wall - sum(entry.wall for entry in account.entries.values())
