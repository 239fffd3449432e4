"""Looks at tasks, those with C frames in place of those that end at the innermost Python frame.

The former are fewer, begin when tasks have run for a while and come from outside. So they say among
which stacks the time of a prefix is shared out, and looks from within say how much it is: never
both, and the seconds of each prefix stay what they are. Where C frames were seen in less than
`LEAST` of a prefix's time in a process, looks from within stay.

Whether C code computes or waits the former do not tell: that is what looks from within saw of the
Python function that called it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.profiles.flame import (
    NATIVE_SHARE,
    PYTHON_SHARE,
    WAITING_SHARE,
    shares_of,
)
from stageprof_collectors.profiles.gil import Floats
from stageprof_collectors.profiles.whose import COMPUTE, Functions, numbered, prefixes
from stageprof_collectors.storage.columns import Ints

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Columns
    from stageprof_collectors.recording import Recording

#: Part of a prefix's time in a process of which C frames must be known.
LEAST: Final = 0.25
#: No look counts for more ns; a recording may claim any number.
_MOST: Final = 2.0**61
_SHARES: Final = (PYTHON_SHARE, NATIVE_SHARE, WAITING_SHARE)


class Looks(NamedTuple):
    """Looks at tasks, by the process and prefix that they are of, and by function."""

    #: number of the process and prefix
    whose: Ints
    #: number of those and of the innermost Python function
    function: Ints
    #: whether something of C stands inside that
    c: NDArray[np.bool_]
    ns: Floats


class _Scale(NamedTuple):
    """By the number of a process and prefix: what its looks with C frames are multiplied by."""

    #: whether they take the place of those from within
    known: NDArray[np.bool_]
    #: ns from within for each of theirs, and looks from within for each ns
    ns: Floats
    looks: Floats


def looked(recording: Recording) -> Columns:
    """See `Recording.looked`."""
    within = dict(recording.store.table("flame"))
    within["share"] = shares_of(recording, within["how"])
    if not recording.store.rows("native"):
        return within
    functions = Functions(recording.nodes)
    native = _native(recording, functions, within)
    return _joined(recording, functions, within, native) if len(native["name"]) else within


def _native(recording: Recording, functions: Functions, within: Columns) -> Columns:
    """Looks with C frames of which the task is known: place, node, name (as in FLAME) and ns."""
    rows = recording.timeline.read("native", "start", "stop")
    name = prefixes(recording, functions, within, rows)
    ns = np.clip(rows["stop"].astype(float) - rows["start"].astype(float), 0.0, _MOST)
    some = np.flatnonzero((name >= 0) & (ns > 0))
    found = {"place": rows["place"], "node": rows["node"], "name": name, "total": ns}
    return {column: values[some] for column, values in found.items()}


def _joined(
    recording: Recording, functions: Functions, within: Columns, native: Columns
) -> Columns:
    """Looks from within, those with C frames in place of some of them."""
    tasks = np.flatnonzero(within["step"] == COMPUTE)
    of_tasks = {column: values[tasks] for column, values in within.items()}
    inner, outer = _looks(recording, functions, of_tasks, native)
    scale = _scale(inner, of_tasks["count"], outer)
    kept = np.ones(len(within["name"]), np.bool_)
    kept[tasks[scale.known[inner.whose]]] = False
    mine = np.flatnonzero(scale.known[outer.whose])
    ns = outer.ns[mine] * scale.ns[outer.whose[mine]]
    parts = _parts(inner, of_tasks["share"], outer)[:, mine] * ns
    count = ns * scale.looks[outer.whose[mine]]
    new = _rows({c: values[mine] for c, values in native.items()}, parts, count)
    return {c: np.concatenate([within[c][kept], new[c]]) for c in within}


def _looks(
    recording: Recording, functions: Functions, inner: Columns, native: Columns
) -> tuple[Looks, Looks]:
    """Looks from within, and with C frames, with numbers that both have in common."""
    process, cut = recording.timeline.gil.process, len(inner["name"])
    both = {c: np.concatenate([inner[c], native[c]]) for c in ("place", "name", "node", "total")}
    whose = numbered(process[both["place"]], both["name"])
    at = recording.nodes.of(both["place"], both["node"])
    python = functions.python[at]
    function = numbered(whose, functions.number[python])
    ns, c = np.clip(both["total"].astype(float), 0.0, _MOST), python != at
    return (
        Looks(whose[:cut], function[:cut], c[:cut], ns[:cut]),
        Looks(whose[cut:], function[cut:], c[cut:], ns[cut:]),
    )


def _scale(inner: Looks, count: Ints, outer: Looks) -> _Scale:
    size = int(max(inner.whose.max(initial=-1), outer.whose.max(initial=-1))) + 1
    whole, seen = (_sums(looks.whose, looks.ns, size) for looks in (inner, outer))
    known = (seen >= LEAST * whole) & (whole > 0) & (seen > 0)
    looks = _sums(inner.whose, np.clip(count.astype(float), 0.0, _MOST), size)
    return _Scale(known, _part(whole, seen), _part(looks, whole))


# -- what they did --------------------------------------------------------------------------------


def _parts(within: Looks, share: Ints, native: Looks) -> Floats:
    """The parts of each look with C frames that are Python, native and waiting."""
    size = int(max(within.function.max(initial=-1), native.function.max(initial=-1))) + 1
    did = np.stack([_sums(within.function, within.ns * (share == s), size) for s in _SHARES])
    waits = _part(did[WAITING_SHARE], did[NATIVE_SHARE] + did[WAITING_SHARE])
    python = np.where(native.c, 0.0, _bytecode(did, native, size)[native.function])
    idle = (1 - python) * waits[native.function]
    return np.stack([python, 1 - python - idle, idle])


def _bytecode(did: Floats, native: Looks, size: int) -> Floats:
    """Of each function the part of the looks that end in it that is bytecode.

    All of its bytecode is there, with what it calls of the interpreter's own C code.
    """
    whole = _sums(native.function, native.ns, size)
    ended = _sums(native.function, native.ns * ~native.c, size)
    python = _part(did[PYTHON_SHARE], did.sum(axis=0)) * whole
    return np.where(did.sum(axis=0) > 0, np.minimum(_part(python, ended), 1.0), 1.0)


def _sums(numbers: Ints, of: Floats, size: int) -> Floats:
    """What is of each number, together."""
    return np.bincount(numbers, of, size).astype(float)


def _part(of: Floats, whole: Floats) -> Floats:
    return np.divide(of, whole, out=np.zeros(len(of)), where=whole > 0)


def _rows(native: Columns, ns: Floats, count: Floats) -> Columns:
    """Looks with C frames as rows like FLAME's: of each look one for each share of it."""
    row, share = np.nonzero(ns.T > 0)
    first = np.append(True, row[1:] != row[:-1])[: len(row)]
    return {
        "place": native["place"][row],
        "t": np.zeros(len(row), np.int64),
        "step": np.full(len(row), COMPUTE),
        "name": native["name"][row],
        "how": np.full(len(row), -1),
        "node": native["node"][row],
        "count": np.where(first, np.round(count[row]), 0).astype(np.int64),
        "total": np.round(ns[share, row]).astype(np.int64),
        "share": share,
    }
