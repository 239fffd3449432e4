"""`rec.gil()`: seconds of the GIL by process, task prefix and line of code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Columns, Ints, present
from stageprof_collectors.profiles.gil import Floats, Names, Sum, Thread
from stageprof_collectors.profiles.whereabouts import SUMS, by_line
from stageprof_collectors.storage.rows import by_thread
from stageprof_runtime.gil.watch import LONG_NS, SELDOMMEST_NS

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

COLUMNS: Final = [
    "place", "thread", "prefix", "function", "file", "line", "hold_s", "wait_s", "caused_s",
    "source",
]  # fmt: skip
#: The watch tells what it saw so often; see `runtime/stageprof_runtime/gil/watch.py`.
EVERY_NS: Final = 500_000_000
#: Seconds that one of its first looks stands for while few threads wait.
LOOK_S: Final = 0.05
#: Nothing takes longer (ns); a recording may claim any number.
_AGE: Final = 2**61


#: Rows of a table by the process and the thread that they are of.
Rows = Mapping[tuple[int, int], Ints]


class Known(NamedTuple):
    """What the pieces of every thread's time are looked up in."""

    runs: Columns
    stood: Columns
    runs_of: Rows
    stood_of: Rows
    #: of each run, and then of no run, the number of its prefix among `prefixes`
    prefix: Ints
    prefixes: NDArray[np.object_]


class Pieces(NamedTuple):
    """Pieces of a thread's time, in each of which it was in one run and at one line."""

    start: Ints
    stop: Ints
    #: number of the prefix in `Known.prefixes`
    prefix: Ints
    #: row of the table of where threads stood; -1: not known
    stood: Ints


class Sums(NamedTuple):
    """Seconds of a thread by prefix and by the number of a label; -1 is that of no label."""

    prefix: Ints
    label: Ints
    hold_s: Floats
    wait_s: Floats
    caused_s: Floats


def gil(recording: Recording) -> pd.DataFrame:
    """See `Recording.gil`."""
    known, threads = _known(recording), sorted(recording.timeline.gil.threads)
    found = [_of_thread(recording, known, *which) for which in threads]
    if not sum(len(sums.prefix) for sums in found):
        return pd.DataFrame(columns=COLUMNS)
    columns = dict(zip(Sums._fields, map(np.concatenate, zip(*found, strict=True)), strict=True))
    columns["prefix"] = known.prefixes[columns["prefix"]]
    names = Names(recording)
    called = np.array([names.of(*which) for which in threads], dtype=object)
    whose = np.repeat(called, [len(sums.prefix) for sums in found], axis=0)
    frame = pd.DataFrame(columns | {"place": whose[:, 0], "thread": whose[:, 1]})
    by = [name for name in COLUMNS if name not in SUMS]
    total = by_line(recording, frame).groupby(by, sort=False, as_index=False)[SUMS].sum()
    return total[COLUMNS].sort_values(["hold_s", "wait_s"], ascending=False, ignore_index=True)


def _known(recording: Recording) -> Known:
    timeline, groups = recording.timeline, recording.groups
    prefixes = np.array([*(row.prefix for row in groups.rows), ""], dtype=object)
    codes, different = pd.factorize(prefixes)
    runs, stood = timeline.runs, timeline.read("stood", "start", "stop")
    process = timeline.gil.process
    of_run = np.where(runs["wplace"] >= 0, process[np.maximum(runs["wplace"], 0)], -1)
    return Known(
        runs,
        stood,
        by_thread(of_run, runs["thread"]),
        by_thread(process[stood["place"]], stood["thread"]),
        codes[np.append(groups.of_run, -1)],
        np.array(different),
    )


def _of_thread(recording: Recording, known: Known, process: int, thread: int) -> Sums:
    had = recording.timeline.gil.threads[process, thread]
    pieces = _pieces(known, had, (process, thread))
    sums = [total.between(pieces.start, pieces.stop) / 1e9 for total in had]
    some = np.flatnonzero(sums[0] + sums[1] > 0)
    pieces, sums = Pieces(*(column[some] for column in pieces)), [s[some] for s in sums]
    labels = np.append(known.stood["label"], -1)[pieces.stood]
    labels = np.where(_lasting(pieces, sums[0] + sums[1]), labels, -1)
    (prefix, label), row = _together(pieces.prefix, labels)
    held, waited, caused = (np.bincount(row, s, len(prefix)).astype(float) for s in sums)
    return Sums(prefix, label, held, waited, caused)


def _pieces(known: Known, had: Thread, whose: tuple[int, int]) -> Pieces:
    runs, stood, none = known.runs, known.stood, np.zeros(0, np.int64)
    at, mine = known.runs_of.get(whose, none), known.stood_of.get(whose, none)
    bounds = [total.edges[[0, -1]] for total in had if len(total.edges)]
    ends = [rows[e][i] for rows, i in ((runs, at), (stood, mine)) for e in ("start", "stop")]
    edges = np.unique(np.concatenate([*bounds, *ends]))
    start, stop = edges[:-1], edges[1:]
    run = _covering(runs["start"][at], runs["stop"][at], at, start)
    where = _covering(stood["start"][mine], stood["stop"][mine], mine, start)
    return Pieces(start, stop, known.prefix[run], where)


def _covering(starts: Ints, stops: Ints, values: Ints, at: Ints) -> Ints:
    """The value of the interval that is going on at each instant, the last begun; -1: none."""
    if not len(starts):
        return np.full(len(at), -1)
    order = np.argsort(starts, kind="stable")
    found = np.searchsorted(starts[order], at, side="right") - 1
    row = order[np.maximum(found, 0)]
    return np.where((found >= 0) & (stops[row] > at), values[row], -1)


def _lasting(pieces: Pieces, weight: Floats) -> NDArray[np.bool_]:
    """Whether a thread may still be where it stood.

    It is said to stand there until it is seen elsewhere, which may be in a task of another kind
    that it has begun meanwhile: it stood in tasks of the kind of which the most time is.
    """
    (stood, _), row = _together(pieces.stood, pieces.prefix)
    total = np.bincount(row, weight, len(stood))
    order = np.lexsort((total, stood))
    best = np.append(stood[order][1:] != stood[order][:-1], True)[: len(stood)]
    mostly = np.zeros(len(stood), np.bool_)
    mostly[order[best]] = True
    lasting: NDArray[np.bool_] = mostly[row] & (pieces.stood >= 0)
    return lasting


def _together(first: Ints, second: Ints) -> tuple[tuple[Ints, Ints], Ints]:
    """The different pairs of two columns (of -1 and above), and which of them each row is."""
    width = int(second.max(initial=-1)) + 2
    both, row = np.unique((first + 1) * width + second + 1, return_inverse=True)
    return (both // width - 1, both % width - 1), row


# -- when -----------------------------------------------------------------------------------------


def spans(thread: Thread) -> tuple[Ints, Ints, Ints]:
    """When a thread held the GIL (0) or waited for it (1), in order, the longest there are.

    Returns:
        Starts, stops, and which it was.
    """
    edges = [_pairs(total) for total in (thread.held, thread.waited)]
    start, stop = np.concatenate(edges).T
    waits = np.repeat([0, 1], [len(pairs) for pairs in edges])
    order = np.argsort(start, kind="stable")
    start, stop, waits = start[order], stop[order], waits[order]
    before = np.maximum.accumulate(np.concatenate([start[:1], stop[:-1]]))
    start = np.maximum(start, before)
    start, stop, waits = (column[stop > start] for column in (start, stop, waits))
    new = (start[1:] > stop[:-1]) | (waits[1:] != waits[:-1])
    first = np.flatnonzero(np.append(True, new)[: len(start)])
    last = np.append(first[1:] - 1, len(start) - 1)[: len(first)]
    return start[first], stop[last], waits[first]


def _pairs(total: Sum) -> Ints:
    return total.edges.reshape(-1, 2)


def watched(recording: Recording) -> dict[int, tuple[int, int]]:
    """From when to when holders and waiters of each process's GIL were looked at, ns.

    The watch begins some tenths of a second after the recording, and tells each half second.
    """
    gil, edges = recording.timeline.gil, defaultdict[int, list[int]](list)
    for (process, _), had in gil.threads.items():
        edges[process] += [int(sum_.edges[i]) for sum_ in had if len(sum_.edges) for i in (0, -1)]
    for where, (first, last) in told(recording).items():
        if edges.get(process := int(gil.process[where])):
            edges[process] += [first - EVERY_NS, last]
    return {p: (max(min(all_), -_AGE), min(max(all_), _AGE)) for p, all_ in edges.items() if all_}


def look_s(recording: Recording) -> float:
    """Seconds that a look at the GIL stands for at most, while few threads wait.

    The watch looks more seldom the longer it has looked; that of a flight recorder has for long.
    """
    long = bool(recording.store.header.get("flight"))
    halved = sum(long or recording.wall * 1e9 > after for after in LONG_NS)
    return min(LOOK_S * (1 << halved), SELDOMMEST_NS / 1e9)


def told(recording: Recording) -> dict[int, tuple[int, int]]:
    """From when to when each place told how often its GIL was taken, ns."""
    samples, strings = recording.timeline.read("sample", "t"), recording.store.strings
    wanted = [i for i in present(samples["name"]) if strings[i] == "gil.contention"]
    rows = np.flatnonzero(np.isin(samples["name"], wanted))
    where, t = samples["place"][rows], samples["t"][rows]
    ends = np.full((2, len(recording.store.places)), [[2**62], [-(2**62)]])
    np.minimum.at(ends[0], where, t)
    np.maximum.at(ends[1], where, t)
    return {place: (int(ends[0][place]), int(ends[1][place])) for place in present(where)}
