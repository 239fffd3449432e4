"""What of one side is what of the other: a program that was edited has its lines elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from stageprof_collectors.comparison.measured import Group, Measured


def matched(base: Sequence[Measured], head: Sequence[Measured]) -> list[Measured]:
    """The candidate's recordings with the lines that the baseline has for the same layers."""
    moved = _moved(_lines(base), _lines(head))
    return [_renamed(each, moved) for each in head] if moved else list(head)


def now_at(base: Sequence[Measured], head: Sequence[Measured]) -> dict[Group, Group]:
    """Where the candidate has the baseline's layers whose lines moved."""
    return {was: now for now, was in _moved(_lines(base), _lines(head)).items()}


def _lines(side: Iterable[Measured]) -> dict[tuple[str, str], set[int]]:
    """The lines that made layers of each prefix and file."""
    lines: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for each in side:
        for group in (*(cell.group for cell in each.cells), *each.tasks):
            if group.line:
                lines[group.prefix, group.file].add(group.line)
    return lines


def _moved(
    before: dict[tuple[str, str], set[int]], after: dict[tuple[str, str], set[int]]
) -> dict[Group, Group]:
    """Groups of the candidate -> those of the baseline that they are, where the line differs.

    As many lines as before are the same lines, in their order. Otherwise some came or went: those
    with the same number are the same, and the others in their order.
    """
    moved: dict[Group, Group] = {}
    for (prefix, file), now in after.items():
        was = before.get((prefix, file), set())
        same = set() if len(was) == len(now) else was & now
        pairs = zip(sorted(was - same), sorted(now - same), strict=False)
        moved |= {Group(prefix, file, b): Group(prefix, file, a) for a, b in pairs if a != b}
    return moved


def _renamed(each: Measured, moved: dict[Group, Group]) -> Measured:
    def was(group: Group) -> Group:
        return moved.get(group, group)

    return replace(
        each,
        cells={cell._replace(group=was(cell.group)): s for cell, s in each.cells.items()},
        tasks={was(group): number for group, number in each.tasks.items()},
        read={was(group): nbytes for group, nbytes in each.read.items()},
    )
