"""What of one side is what of the other: a program that was edited has its lines elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import inf, log
from statistics import median
from typing import Final

from stageprof_collectors.comparison.measured import Group, Measured

#: What a line is known by: its tasks, and seconds of the critical path, both usual.
_Marks = tuple[float, float]
#: How much two lines may differ and still be taken for the same rather than those of one number.
_SAME_NUMBER: Final = 0.2
#: Seconds that are hardly any.
_LITTLE_S: Final = 1e-3


def matched(base: Sequence[Measured], head: Sequence[Measured]) -> list[Measured]:
    """The candidate's recordings with the lines that the baseline has for the same layers."""
    moved = _names(base, head)
    return [_renamed(each, moved) for each in head] if moved else list(head)


def now_at(base: Sequence[Measured], head: Sequence[Measured]) -> dict[Group, Group]:
    """Where the candidate has the layers of which the lines were given other numbers."""
    return {was: now for now, was in _names(base, head).items()}


def _names(base: Sequence[Measured], head: Sequence[Measured]) -> dict[Group, Group]:
    """Groups of the candidate -> what they are called: as the baseline's that they are, if any."""
    after = _lines(head)
    moved = _moved(_lines(base), after)
    return moved | _displaced(moved, after)


def _lines(side: Sequence[Measured]) -> dict[tuple[str, str], dict[int, _Marks]]:
    """The lines that made layers of each prefix and file."""
    tasks: defaultdict[Group, list[float]] = defaultdict(list)
    seconds: defaultdict[Group, list[float]] = defaultdict(list)
    for each in side:
        for group, number in each.tasks.items():
            tasks[group].append(number)
        took: defaultdict[Group, float] = defaultdict(float)
        for cell, s in each.cells.items():
            took[cell.group] += s
        for group, s in took.items():
            seconds[group].append(s)
    lines: defaultdict[tuple[str, str], dict[int, _Marks]] = defaultdict(dict)
    for group in (*tasks, *seconds):
        if group.line:
            marks = (median(tasks.get(group, [0])), median(seconds.get(group, [0])))
            lines[group.prefix, group.file][group.line] = marks
    return lines


def _moved(
    before: dict[tuple[str, str], dict[int, _Marks]],
    after: dict[tuple[str, str], dict[int, _Marks]],
) -> dict[Group, Group]:
    """Groups of the candidate -> those of the baseline that they are, where the line differs.

    As many lines as before are the same lines, in their order. Otherwise some came or went: those
    that are left are, in their order, the most alike.
    """
    moved: dict[Group, Group] = {}
    for (prefix, file), now in after.items():
        was = before.get((prefix, file), {})
        as_many = len(was) == len(now)
        pairs = list(zip(sorted(was), sorted(now), strict=True)) if as_many else _aligned(was, now)
        moved |= {Group(prefix, file, b): Group(prefix, file, a) for a, b in pairs if a != b}
    return moved


def _displaced(
    moved: dict[Group, Group], after: dict[tuple[str, str], dict[int, _Marks]]
) -> dict[Group, Group]:
    """New lines that have the number of another's in the baseline: each gets one that was left."""
    taken = set(moved.values())
    found: dict[Group, Group] = {}
    for (prefix, file), now in after.items():
        mine = [Group(prefix, file, line) for line in sorted(now)]
        left = [group for group in mine if group in moved and group not in taken]
        new = [group for group in mine if group in taken and group not in moved]
        found |= dict(zip(new, left, strict=False))
    return found


def _aligned(was: dict[int, _Marks], now: dict[int, _Marks]) -> list[tuple[int, int]]:
    """Pairs of lines: all of the fewer, in their order, so that they differ least altogether.

    S. Needleman and C. Wunsch, A general method applicable to the search for similarities, J. Mol.
    Biol. 48 (1970); here the gaps of the longer side cost nothing.
    """
    few, many = sorted((sorted(was), sorted(now)), key=len)
    turned = len(was) > len(now)
    best: list[tuple[float, tuple[tuple[int, int], ...]]] = [(0.0, ())] * (len(many) + 1)
    for i, one in enumerate(few):
        row: list[tuple[float, tuple[tuple[int, int], ...]]] = [(inf, ())] * (len(many) + 1)
        for j in range(i, len(many)):
            pair = (many[j], one) if turned else (one, many[j])
            cost, pairs = best[j]
            taken = (cost + _unlike(pair, was[pair[0]], now[pair[1]]), (*pairs, pair))
            row[j + 1] = min(row[j], taken)
        best = row
    return list(best[-1][1])


def _unlike(lines: tuple[int, int], was: _Marks, now: _Marks) -> float:
    """How much two lines differ: by how many times in tasks, and in seconds."""
    tasks = abs(log((1 + now[0]) / (1 + was[0])))
    seconds = abs(log((_LITTLE_S + now[1]) / (_LITTLE_S + was[1])))
    return tasks + seconds + _SAME_NUMBER * (lines[0] != lines[1])


def _renamed(each: Measured, moved: dict[Group, Group]) -> Measured:
    def was(group: Group) -> Group:
        return moved.get(group, group)

    return replace(
        each,
        cells={cell._replace(group=was(cell.group)): s for cell, s in each.cells.items()},
        tasks={was(group): number for group, number in each.tasks.items()},
        read={was(group): nbytes for group, nbytes in each.read.items()},
    )
