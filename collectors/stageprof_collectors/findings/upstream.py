"""Where a collection gets its many pieces: up the graph from them, to the layer that makes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.indexing import SPLIT, holding
from stageprof_collectors.findings.crowd import Bools, is_piece

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: A layer with so many times fewer pieces than those made of them is cut up there.
FEW: Final = 8
#: Where a piece is made of so many of them on average, pieces are paired, not cut.
_PAIRED: Final = 1.5
#: What `da.from_delayed` calls the array of one call, after what was called: each is the only piece
#: of one.
OF_CALL: Final = "-from-value"
#: No prefix.
_NONE: Final = re.compile(r"(?!)")


class Upstream(NamedTuple):
    """The layer that makes the pieces, and how many pieces it cuts for that (0: none)."""

    row: Row
    cut: int = 0
    #: what opens as a whole that from which it reads them (Zarr, HDF5, netCDF)
    store: Row | None = None
    #: whether each is what a call of a function of the user's gives (`delayed`)
    called: bool = False
    #: the layer that makes the many of pairs of its pieces
    pairs: Row | None = None
    #: of its own pieces: how many in one graph (0: not known), and the usual size, bytes
    number: int = 0
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
    positions = holding(recording.layered)[needs.on]
    at, seen, pairs = int(alike[groups.rows.index(row)]), set[int](), None
    while at not in seen:
        seen.add(at)
        mine = (of == at) & (before != at) & ~positions
        needed = np.unique(needs.on[mine])
        if not len(needed):
            break
        pieces = np.bincount(of_run[needed])
        nbytes = np.bincount(of_run[needed], runs["nbytes"][needed])
        many = pieces * FEW > tasks[at]
        pieces, nbytes = (pieces * many, nbytes * many) if many.any() else (pieces, nbytes)
        most = int(np.argmax(nbytes if nbytes.any() else pieces))
        if not many.any():
            if _stores(recording)[needed[of_run[needed] == most]].all():
                return made_by(recording, first[at])
            # A shuffle's are of pairs, too: of one piece before it and one behind it.
            if mine.sum() < _PAIRED * tasks[at] and first[at].prefix != SPLIT:
                return Upstream(first[at], int(pieces[most]))
            pairs = first[at]
        at = most
    return made_by(recording, first[at])._replace(pairs=pairs)


def made_by(recording: Recording, row: Row) -> Upstream:
    """A layer that makes pieces of nothing, or of what it reads them from."""
    groups, needs, runs = recording.groups, recording.timeline.depends, recording.timeline.runs
    alike, _ = _alike(groups.rows)
    mine = alike[groups.of_run] == alike[groups.rows.index(row)]
    rows = np.flatnonzero(mine)
    if not len(rows):
        return Upstream(row)
    return Upstream(
        row,
        store=_store(recording, needs.on[mine[needs.user]]),
        called=row.prefix.endswith(OF_CALL) or not recording.layered.chunked[rows].any(),
        number=int(np.bincount(recording.timeline.graph_rows[rows] + 1).max()),
        nbytes=float(np.median(runs["nbytes"][rows])),
    )


def _store(recording: Recording, needed: Ints) -> Row | None:
    """The layer of the first of these runs that opens what others read from; None if none does."""
    opened = needed[_stores(recording)[needed]]
    return recording.groups.rows[int(recording.groups.of_run[opened[0]])] if len(opened) else None


def _stores(recording: Recording) -> Bools:
    """Which runs made something that pieces are read from: they need none, and made no piece."""
    runs, names = recording.timeline.runs, recording.store.strings
    kinds = np.array([bool(name) and not is_piece(name) for name in names], np.bool_)
    found: Bools = kinds[runs["type"]]
    found[recording.timeline.depends.user] = False
    return found


def source(recording: Recording, row: Row, but: re.Pattern[str] = _NONE) -> Row | None:
    """The layer with most bytes of those that need no other, at another line if there is one.

    Those whose prefix is `but` are left out; None if there are no others. Local schedulers tell no
    bytes: there it is the one with most tasks.
    """
    groups, needs, runs = recording.groups, recording.timeline.depends, recording.timeline.runs
    stores = _stores(recording)
    first = np.setdiff1d(np.flatnonzero(~stores), needs.user[~stores[needs.on]])
    nbytes = runs["nbytes"][first] if runs["nbytes"][first].any() else np.ones(len(first))
    sums = np.bincount(groups.of_run[first], nbytes, minlength=len(groups.rows))
    most = [groups.rows[i] for i in np.argsort(-sums, kind="stable") if sums[i]]
    most = [found for found in most if not but.fullmatch(found.prefix)]
    elsewhere = (r for r in most if (r.file, r.line) != (row.file, row.line))
    return next(elsewhere, most[0] if most else None)


def _alike(rows: list[Row]) -> tuple[Ints, list[Row]]:
    """Of each row the number that those of its prefix and line have; of each number the first."""
    numbers: dict[tuple[str, str, int], int] = {}
    alike = [numbers.setdefault((r.prefix, r.file, r.line), len(numbers)) for r in rows]
    first: dict[int, Row] = {}
    for number, row in zip(alike, rows, strict=True):
        first.setdefault(number, row)
    return np.array(alike, np.int64), list(first.values())
