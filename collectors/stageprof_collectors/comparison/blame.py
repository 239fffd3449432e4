"""Blame: which step, layer, line and object a change comes from, and how much of it each explains.

Every part is the difference of its medians on both sides, so that parts need not sum to the whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

import numpy as np

from stageprof_collectors.comparison.measured import NOBODY, Cell, Group, Held, Measured, Thing
from stageprof_collectors.comparison.times import TimeChange
from stageprof_runtime.stage import SIX, Stage

#: Parts of a kind that are named, and the share of the change from which one is.
TOP: Final = 3
WORTH: Final = 0.05
#: An object has changed if a number of its differs by more than this share.
CHANGED: Final = 0.05

K = TypeVar("K", bound=Hashable)


class Part(NamedTuple):
    """Something that takes longer or shorter."""

    #: a step's name, or a layer's prefix ("" for no layer), or "" for a line
    name: str
    #: the user's line that it belongs to: the candidate's, and the baseline's if it was another
    file: str
    line: int
    was: int
    before_s: float
    after_s: float
    #: how much of the change it explains; below 0 it is a change the other way
    share: float

    @property
    def change_s(self) -> float:
        """Seconds more."""
        return self.after_s - self.before_s


class Moved(NamedTuple):
    """An object of the user's that travels in another way; None where a side has it not."""

    thing: Thing
    before: Held | None
    after: Held | None


@dataclass(frozen=True)
class Blame:
    """What a change of a stage comes from; the parts that explain most come first."""

    stage: Stage
    before_s: float
    after_s: float
    #: the change that is explained, seconds: see `TimeChange.change_s`
    change_s: float
    steps: tuple[Part, ...]
    layers: tuple[Part, ...]
    lines: tuple[Part, ...]
    #: what of the objects inside graphs changed, if the stage has to do with them
    objects: tuple[Moved, ...]
    #: tasks that ran of the first layer, on both sides
    tasks: tuple[int, int]
    #: what of the change its threads were on no processor for, seconds; 0 if that was not seen
    waiting_s: float = 0.0
    #: the step that changed most within the first layer that explains something
    within: Part | None = None


class Sides(NamedTuple):
    """Both sides, layers matched, and where the candidate has the lines that moved."""

    base: Sequence[Measured]
    head: Sequence[Measured]
    now_at: Mapping[Group, Group]


#: The stages that objects inside graphs take time in.
_CARRYING: Final = (Stage.SERIALIZATION, Stage.COMMUNICATION)


def blame(sides: Sides, time: TimeChange) -> Blame:
    """What the change of a stage comes from.

    Its parts that changed beyond chance are named before others.

    Args:
        sides: the recordings.
        time: the stage's change.
    """
    stage, change = Stage(time.name), time.change_s
    seen = [part.what for part in time.parts if not isinstance(part.what, Stage)]
    keys: tuple[Callable[[Cell], str | Group], ...] = (_step, _layer, _line)
    steps, layers, lines = (_parts(sides, stage, key, set(map(key, seen)), change) for key in keys)
    named = tuple(part for part in layers if part.name)
    first = explained(layers)
    return Blame(
        stage=stage,
        before_s=time.before_s,
        after_s=time.after_s,
        change_s=change,
        steps=steps,
        layers=layers,
        lines=lines,
        objects=_objects(sides) if stage in _CARRYING else (),
        tasks=_tasks(sides, named[0]) if named else (0, 0),
        waiting_s=sum(part.change_s for part in time.parts if isinstance(part.what, Stage)),
        within=_within(sides, stage, first, change) if first is not None else None,
    )


def _within(sides: Sides, stage: Stage, layer: Part, change: float) -> Part | None:
    """The step of a layer that changed most as the layer did."""
    group = Group(layer.name, layer.file, layer.was)

    def summed(each: Measured) -> Mapping[str, float]:
        mine = {cell: s for cell, s in each.cells.items() if cell.group == group}
        return {cell.step: s for cell, s in mine.items() if cell.stage == stage}

    before, after = _medians(sides.base, summed), _medians(sides.head, summed)
    parts = [_part(sides, n, before[n], after[n], change) for n in dict.fromkeys((*before, *after))]
    return max(parts, key=lambda part: part.change_s * layer.change_s, default=None)


def _step(cell: Cell) -> str:
    return cell.step


def _layer(cell: Cell) -> Group:
    return cell.group


def _line(cell: Cell) -> Group:
    return cell.group._replace(prefix="")


def _medians(
    side: Sequence[Measured], of: Callable[[Measured], Mapping[K, float]]
) -> defaultdict[K, float]:
    """The median over recordings of each of some numbers; one that a recording has not is 0."""
    tables = [of(each) for each in side]
    names = dict.fromkeys(name for table in tables for name in table)
    found: defaultdict[K, float] = defaultdict(float)
    for name in names:
        found[name] = float(np.median([table.get(name, 0.0) for table in tables]))
    return found


def _parts(
    sides: Sides,
    stage: Stage,
    key: Callable[[Cell], str | Group],
    seen: set[str | Group],
    change: float,
) -> tuple[Part, ...]:
    """The parts of a stage by step, layer or line: those that explain most of its change."""

    def summed(each: Measured) -> Mapping[str | Group, float]:
        sums: defaultdict[str | Group, float] = defaultdict(float)
        for cell, seconds in each.cells.items():
            if cell.stage == stage and stage in SIX:  # other time has no parts
                sums[key(cell)] += seconds
        return sums

    before, after = _medians(sides.base, summed), _medians(sides.head, summed)
    names = dict.fromkeys((*before, *after))
    found = {name: _part(sides, name, before[name], after[name], change) for name in names}
    worth = [n for n, part in found.items() if part.share >= (0 if n in seen else WORTH)]
    worth.sort(key=lambda name: (name not in seen, -found[name].share))
    return tuple(found[name] for name in worth[:TOP])


def _part(sides: Sides, name: str | Group, before: float, after: float, change: float) -> Part:
    share = (after - before) / change if change else 0.0
    if isinstance(name, str):
        return Part(name, "", 0, 0, before, after, share)
    return Part(name.prefix, name.file, _now(sides, name), name.line, before, after, share)


def _now(sides: Sides, group: Group) -> int:
    """The candidate's line for one of the baseline's."""
    if group in sides.now_at:
        return sides.now_at[group].line
    same = (n for was, n in sides.now_at.items() if was[1:] == group[1:])
    found = next(same, None) if not group.prefix else None
    return found.line if found is not None else group.line


def _tasks(sides: Sides, part: Part) -> tuple[int, int]:
    """Tasks of a layer that ran."""
    group = Group(part.name, part.file, part.was)
    numbers = (int(np.median([e.tasks.get(group, 0) for e in side])) for side in sides[:2])
    before, after = numbers
    return before, after


# -- objects --------------------------------------------------------------------------------------


def _objects(sides: Sides) -> tuple[Moved, ...]:
    """Objects that travel in another way, those first that take more seconds now."""
    things = dict.fromkeys(t for each in (*sides.head, *sides.base) for t in each.objects)
    found = [Moved(t, _usual(sides.base, t), _usual(sides.head, t)) for t in things]
    changed = (moved for moved in found if _changed(moved))
    return tuple(sorted(changed, key=lambda moved: -_more(moved))[:TOP])


def _usual(side: Sequence[Measured], thing: Thing) -> Held | None:
    """What most recordings of a side say of an object: of each number the median."""
    held = [each.objects[thing] for each in side if thing in each.objects]
    if 2 * len(held) <= len(side):
        return None
    numbers = np.median([(h.nbytes, h.copies, h.tasks, h.seconds) for h in held], axis=0)
    nbytes, copies, tasks, seconds = numbers.tolist()
    return Held(held[0].line, held[0].layer, int(nbytes), int(copies), int(tasks), seconds)


def _changed(moved: Moved) -> bool:
    if moved.before is None or moved.after is None:
        return moved.before is not moved.after
    pairs = zip(moved.before[2:], moved.after[2:], strict=True)
    return any(abs(now - was) > CHANGED * was for was, now in pairs)


def _more(moved: Moved) -> float:
    seconds = [held.seconds if held else 0.0 for held in (moved.after, moved.before)]
    return seconds[0] - seconds[1]


def explained(parts: Iterable[Part]) -> Part | None:
    """The first that has a name or a line; what belongs to nobody explains nothing."""
    return next((part for part in parts if part.name or part.line), None)


__all__ = ["NOBODY", "Blame", "Moved", "Part", "Sides", "blame", "explained"]
