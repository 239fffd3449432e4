"""Where a collection gets its many pieces: up the graph from them, to the layer that makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.crowd import is_piece

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: A layer with so many times fewer pieces than those made of them is cut up there.
FEW: Final = 8
#: Where a piece is made of so many of them on average, pieces are paired, not cut.
_PAIRED: Final = 1.5
#: What `da.from_delayed` calls the array of one call, after what was called.
_OF_CALL: Final = "-from-value"


class Upstream(NamedTuple):
    """The layer that makes the pieces, and how many pieces it cuts for that (0: none)."""

    row: Row
    cut: int = 0
    #: whether it reads them from something that is opened as a whole (Zarr, HDF5, netCDF)
    stored: bool = False
    #: whether each is what a call of a function of the user's gives (`delayed`)
    called: bool = False
    #: the layer that makes the many of pairs of its pieces, and what one of these is, bytes
    pairs: Row | None = None
    nbytes: float = 0.0


def upstream(recording: Recording, row: Row) -> Upstream:
    """Go up from a layer, the way of most bytes, as long as those before have about as many pieces.

    Layers of one prefix and line are one here: a slice in a loop makes a layer each time. Pieces
    that are made of pairs (in a matrix product) are as many as there are pairs: up to what is
    paired it goes on.
    """
    groups, needs, runs = recording.groups, recording.timeline.depends, recording.timeline.runs
    alike, first = _alike(groups.rows)
    of_run: Ints = alike[groups.of_run]
    tasks = np.bincount(of_run, minlength=len(first))
    of, before = of_run[needs.user], of_run[needs.on]
    at, seen, pairs = int(alike[groups.rows.index(row)]), set[int](), None
    while at not in seen:
        seen.add(at)
        mine = (of == at) & (before != at)
        needed = np.unique(needs.on[mine])
        if not len(needed):
            break
        pieces = np.bincount(of_run[needed])
        nbytes = np.bincount(of_run[needed], runs["nbytes"][needed])
        many = pieces * FEW > tasks[at]
        pieces, nbytes = (pieces * many, nbytes * many) if many.any() else (pieces, nbytes)
        most = int(np.argmax(nbytes if nbytes.any() else pieces))
        if not many.any():
            if not _pieces(recording, needed[of_run[needed] == most]):
                return Upstream(first[at], stored=True)
            if mine.sum() < _PAIRED * tasks[at]:
                return Upstream(first[at], int(pieces[most]))
            pairs = first[at]
        at = most
    if not pairs:
        return Upstream(first[at], called=is_called(recording, first[at]))
    return Upstream(first[at], pairs=pairs, nbytes=float(np.median(runs["nbytes"][of_run == at])))


def is_called(recording: Recording, row: Row) -> bool:
    """Whether a layer's tasks are calls of a function, and not numbered pieces of a collection.

    Of those that an array is made of (`da.from_delayed`) each is the only piece of one.
    """
    if row.prefix.endswith(_OF_CALL):
        return True
    mine = recording.groups.of_run == recording.groups.rows.index(row)
    return bool(mine.any()) and not recording.layered.chunked[mine].any()


def _pieces(recording: Recording, runs: Ints) -> bool:
    """Whether what runs made are pieces of collections, as far as it is known."""
    kinds = {recording.store.strings[kind] for kind in recording.timeline.runs["type"][runs]}
    return any(not kind or is_piece(kind) for kind in kinds)


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
