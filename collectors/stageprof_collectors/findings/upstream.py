"""Where a collection gets its many pieces: up the graph from them, to the layer that makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.groups import Row

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: A layer with so many times fewer pieces than those made of them is cut up there.
FEW: Final = 8


class Upstream(NamedTuple):
    """The layer that makes the pieces, and how many pieces it cuts for that (0: none)."""

    row: Row
    cut: int


def upstream(recording: Recording, row: Row) -> Upstream:
    """Go up from a layer, the way of most bytes, as long as those before have about as many pieces.

    Layers of one prefix and line are one here: a slice in a loop makes a layer each time.
    """
    groups, needs = recording.groups, recording.timeline.depends
    alike, first = _alike(groups.rows)
    of_run: Ints = alike[groups.of_run]
    tasks = np.bincount(of_run, minlength=len(first))
    of, before = of_run[needs.user], of_run[needs.on]
    at, seen = int(alike[groups.rows.index(row)]), set[int]()
    while at not in seen:
        seen.add(at)
        needed = np.unique(needs.on[(of == at) & (before != at)])
        if not len(needed):
            break
        pieces = np.bincount(of_run[needed])
        nbytes = np.bincount(of_run[needed], recording.timeline.runs["nbytes"][needed])
        most = int(np.argmax(nbytes if nbytes.any() else pieces))
        if pieces[most] * FEW <= tasks[at]:
            return Upstream(first[at], int(pieces[most]))
        at = most
    return Upstream(first[at], 0)


def source(recording: Recording, row: Row) -> Row:
    """The layer with most bytes of those that need no other, at another line if there is one."""
    groups, needs, runs = recording.groups, recording.timeline.depends, recording.timeline.runs
    first = np.setdiff1d(np.arange(len(runs["run"])), needs.user)
    nbytes = np.bincount(groups.of_run[first], runs["nbytes"][first], minlength=len(groups.rows))
    most = [groups.rows[i] for i in np.argsort(-nbytes, kind="stable") if nbytes[i]]
    elsewhere = (r for r in most if (r.file, r.line) != (row.file, row.line))
    return next(elsewhere, most[0] if most else row)


def _alike(rows: list[Row]) -> tuple[Ints, list[Row]]:
    """Of each row the number that those of its prefix and line have; of each number the first."""
    numbers: dict[tuple[str, str, int], int] = {}
    alike = [numbers.setdefault((r.prefix, r.file, r.line), len(numbers)) for r in rows]
    first: dict[int, Row] = {}
    for number, row in zip(alike, rows, strict=True):
        first.setdefault(number, row)
    return np.array(alike, np.int64), list(first.values())
