"""Times: the wall time and the six stages on both sides, tested together.

These seven questions decide. Each stage is asked with its main parts (a step for the tasks of a
layer, and how much of it was waiting): a part that takes much longer is seen where the rest of
its stage varies by as much. Smaller parts and lines are not tested: they explain what was found
(`blame`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.comparison import chance
from stageprof_collectors.comparison.counts import Judged
from stageprof_runtime.stage import SIX, Stage

if TYPE_CHECKING:
    from stageprof_collectors.comparison.measured import Cell, Measured

    What = Cell | Stage

#: What the whole of it is called among the stages.
WALL: Final = "wall"
#: The chance of a false alarm that is taken, over all that is tested, in either direction: of a
#: hundred builds that changed nothing one may fail, or people learn to look away.
ALPHA: Final = 0.02
#: What takes less than this share of the wall time on average, nobody waits for.
TINY: Final = 0.005
#: Main parts of a stage: those that take this share of it on average, at most so many.
MAIN: Final = 0.03
PARTS: Final = 6
#: The least floor: what is slower by less than this is not worth a failed build.
LEAST: Final = 0.02


class TimeChange(NamedTuple):
    """The wall time or a stage on both sides."""

    #: `WALL` or a stage
    name: str
    #: medians, seconds
    before_s: float
    after_s: float
    #: seconds more: of the medians, or, where only parts of it were seen to change, of those
    change_s: float
    effect: chance.Effect
    #: the chance that it is chance, corrected for all that was tested; NaN if it was not
    p: float
    #: what an interval must clear, as a share
    floor: float
    judged: Judged
    #: its parts that changed beyond chance
    parts: tuple[PartChange, ...] = ()

    @property
    def by_parts(self) -> bool:
        """Whether only parts of it were seen to change, and it was judged by those."""
        return bool(self.parts) and self.change_s != self.after_s - self.before_s

    @property
    def tested(self) -> bool:
        """Whether it was among what was tested."""
        return not np.isnan(self.p)


class PartChange(NamedTuple):
    """A main part of a stage that changed."""

    #: what it took for a layer, or of the whole stage what was waiting
    what: What
    before_s: float
    after_s: float
    effect: chance.Effect

    @property
    def change_s(self) -> float:
        """Seconds more."""
        return self.after_s - self.before_s


class _Table(NamedTuple):
    """Seconds of everything that is looked at: rows of both sides, and what the rows are."""

    base: chance.Table
    head: chance.Table
    #: rows of each stage's main parts
    parts: dict[str, dict[int, What]]


#: The lines of a table before the parts.
_NAMES: Final = (WALL, *map(str, Stage))


def time_changes(
    base: Sequence[Measured], head: Sequence[Measured], *, paired: bool, floor: float | None
) -> tuple[TimeChange, ...]:
    """The wall time, then all eight lines of the account.

    `outside` and `unexplained` are no stage of Dask's; they are not tested but as a part of the
    wall time.

    Args:
        base: recordings of one side.
        head: recordings of the other, their layers matched.
        paired: whether the recordings of both sides were made in turn.
        floor: what counts as no change, as a share; None to learn it from the recordings.
    """
    table = _table(base, head)
    effects = chance.effects(table.base, table.head, paired=paired)
    p: dict[int, float] = {}
    families = _families(table)
    if families and min(len(base), len(head)) > 1:
        p = chance.p_values(table.base, table.head, families, paired=paired)
    floors = _floors(table, floor, paired=paired)
    looks = _Looks(table, effects, p, floors, LEAST if floor is None else floor)
    return tuple(looks.change(row) for row in range(len(_NAMES)))


class _Looks:
    """What was found of each row of a table."""

    def __init__(
        self,
        table: _Table,
        effects: list[chance.Effect],
        p: dict[int, float],
        floors: list[float],
        least: float,
    ) -> None:
        self._table = table
        self._effects = effects
        self._p = p
        self._floors = floors
        self._least = least
        self._before, self._after = (np.median(side, axis=1).tolist() for side in table[:2])

    def change(self, row: int) -> TimeChange:
        """The change of the wall time or a stage."""
        name, change_s = _NAMES[row], self._after[row] - self._before[row]
        rows = self._table.parts.get(name, {})
        parts = tuple(self._part(each, what) for each, what in rows.items() if self._beyond(each))
        judged = self._whole(row)
        if judged == Judged.SAME and parts:
            net_s = _sum(parts)
            judged = _net(net_s, change_s, self._least * self._before[row])
            change_s = change_s if judged == Judged.SAME else net_s
        return TimeChange(
            name,
            self._before[row],
            self._after[row],
            change_s,
            self._effects[row],
            min((self._p[each] for each in (row, *rows) if each in self._p), default=float("nan")),
            self._floors[row],
            judged,
            parts if judged != Judged.SAME else (),
        )

    def _part(self, row: int, what: What) -> PartChange:
        return PartChange(what, self._before[row], self._after[row], self._effects[row])

    def _whole(self, row: int) -> Judged:
        if row not in self._p:
            return Judged.UNKNOWN
        if not self._beyond(row):
            return Judged.SAME
        return Judged.WORSE if self._effects[row].ratio > 1 else Judged.BETTER

    def _beyond(self, row: int) -> bool:
        """Whether a change is neither chance nor too small to matter."""
        effect, floor = self._effects[row], self._floors[row]
        clear = effect.low > 1 + floor or effect.high < 1 - floor
        return clear and self._p.get(row, 1.0) <= ALPHA


def _floors(table: _Table, floor: float | None, *, paired: bool) -> list[float]:
    if floor is not None:
        return [floor] * len(table.base)
    learned = chance.paired_floors if paired else chance.floors
    return [max(found, LEAST) for found in learned(table.base, table.head)]


def _families(table: _Table) -> list[list[int]]:
    """The wall time, and each stage with its parts, but for those that take hardly any time.

    Chosen by the mean of both sides together, which no exchange of recordings changes.
    """
    both = np.concatenate(table[:2], axis=1).mean(axis=1)
    rows = [i for i in range(1 + len(SIX)) if both[i] > TINY * both[0]]
    return [[i, *table.parts.get(_NAMES[i], {})] for i in rows]


def _table(base: Sequence[Measured], head: Sequence[Measured]) -> _Table:
    sides = (base, head)
    lines = [
        [[each.wall_s for each in side]]
        + [[max(each.stages[stage], 0.0) for each in side] for stage in Stage]
        for side in sides
    ]
    parts: dict[str, dict[int, What]] = {}
    for stage, mine in _main(base, head).items():
        parts[stage] = {}
        for what in mine:
            parts[stage][len(lines[0])] = what
            for rows, side in zip(lines, sides, strict=True):
                rows.append([_seconds(each, what) for each in side])
    return _Table(np.array(lines[0], float), np.array(lines[1], float), parts)


def _seconds(each: Measured, what: What) -> float:
    return each.waits.get(what, 0.0) if isinstance(what, Stage) else each.cells.get(what, 0.0)


def _main(base: Sequence[Measured], head: Sequence[Measured]) -> dict[str, list[What]]:
    """The main parts of each of the six stages; of a stage with but one cell it is the stage."""
    both = (*base, *head)
    sums: defaultdict[Cell, float] = defaultdict(float)
    for each in both:
        for cell, seconds in each.cells.items():
            sums[cell] += seconds
    found: dict[str, list[What]] = {}
    for stage in SIX:
        least = MAIN * sum(each.stages[stage] for each in both)
        mine = sorted((c for c in sums if c.stage == stage), key=lambda c: -sums[c])
        main = [cell for cell in mine if sums[cell] > least][:PARTS]
        waited = sum(each.waits.get(stage, 0.0) for each in both)
        found[stage] = [*(main if len(main) > 1 else []), *([stage] if waited > least else [])]
    return found


def _sum(parts: Sequence[PartChange]) -> float:
    """Seconds more of some parts; what is waiting is part of the others."""
    apart = [part for part in parts if not isinstance(part.what, Stage)] or parts
    return sum(part.change_s for part in apart)


def _net(parts_s: float, whole_s: float, least_s: float) -> Judged:
    """What parts that changed come to together: some may have taken over what others did.

    So may what does not vary little enough to be seen by itself: the whole must not speak against
    it.
    """
    if abs(parts_s) < least_s or parts_s * whole_s < 0:
        return Judged.SAME
    return Judged.WORSE if parts_s > 0 else Judged.BETTER


def enough(base: int, head: int, *, paired: bool, tests: int = 1 + len(SIX)) -> bool:
    """Whether so many recordings could show any change at all: chance parts few completely."""
    return tests * chance.rarest(base, head, paired=paired) <= ALPHA
