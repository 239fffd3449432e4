"""`rec.gil()`: seconds of the GIL by process, task prefix and line of code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Columns, Ints, present
from stageprof_collectors.profiles.gil import Floats, Sum, Thread
from stageprof_collectors.profiles.looks import Looks, place

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

COLUMNS: Final = [
    "place", "thread", "prefix", "function", "file", "line", "hold_s", "wait_s", "caused_s",
    "source",
]  # fmt: skip
#: What names the lines: py-spy, or the looks from within the process.
SPY, LOOKS = "py-spy", "looks"
_SUMS: Final = ["hold_s", "wait_s", "caused_s"]
_WHERE: Final = ["file", "line", "function", "source"]
#: The watch tells what it saw so often; see `runtime/stageprof_runtime/gil/watch.py`.
EVERY_NS: Final = 500_000_000
#: No file has more lines, and nothing takes longer (ns); a recording may claim any number.
_LINES: Final = 2**31 - 1
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
    by = [name for name in COLUMNS if name not in _SUMS]
    total = _by_line(recording, frame).groupby(by, sort=False, as_index=False)[_SUMS].sum()
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
        _by_thread(of_run, runs["thread"]),
        _by_thread(process[stood["place"]], stood["thread"]),
        codes[np.append(groups.of_run, -1)],
        np.array(different),
    )


def _by_thread(process: Ints, thread: Ints) -> Rows:
    order = np.lexsort((thread, process))
    whose = np.stack([process[order], thread[order]])
    cuts = np.flatnonzero((whose[:, 1:] != whose[:, :-1]).any(axis=0)) + 1
    parts = np.split(order, cuts) if len(order) else []
    return {(int(process[rows[0]]), int(thread[rows[0]])): rows for rows in parts}


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


# -- what it is called ----------------------------------------------------------------------------


class Names:
    """What processes and their threads are called."""

    def __init__(self, recording: Recording) -> None:
        timeline, process = recording.timeline, recording.timeline.gil.process.tolist()
        parts = defaultdict[int, dict[str, None]](dict)
        for number, part in zip(process, recording.store.places, strict=False):
            parts[number][_called(recording, part.role, part.name)] = None
        self._process = {number: " and ".join(names) for number, names in parts.items()}
        marks = [(process[p], label.partition(" ")) for _, p, label in timeline.marks("thread")]
        self._thread = {(number, ident): name for number, (ident, _, name) in marks}
        for _, place_, label in timeline.marks("loop thread"):
            self._thread[process[place_], label] = "event loop"

    def of(self, process: int, thread: int) -> tuple[str, str]:
        """A process by its number in `Gil.process`, and a thread of it."""
        return self._process[process], self._thread.get((process, str(thread))) or str(thread)


def _called(recording: Recording, role: str, name: str) -> str:
    if role != "worker":
        return role
    return f"worker {recording.worker_names.get(name) or name}"


# -- which line it was ----------------------------------------------------------------------------


def _by_line(recording: Recording, frame: pd.DataFrame) -> pd.DataFrame:
    """Functions and lines in place of labels; those that py-spy did not see, from the looks."""
    strings = recording.store.strings
    seen, unseen = frame[frame["label"] >= 0], frame[frame["label"] < 0]
    labels = pd.Index(seen["label"].unique(), dtype=np.int64)
    where = [(*_place(strings[n]), SPY) for n in labels]
    spied = pd.DataFrame(where, columns=_WHERE, index=labels)
    looked = unseen.merge(_shares(recording), on="prefix", how="left")
    nothing = {"file": "", "line": 0, "function": "", "source": "", "share": 1.0}
    looked = looked.fillna(nothing)
    looked[_SUMS] = looked[_SUMS].mul(looked["share"], axis=0)
    parts = [part for part in (seen.join(spied, on="label"), looked) if len(part)]
    both = pd.concat(parts, ignore_index=True)
    return both.astype({"line": int})


def _shares(recording: Recording) -> pd.DataFrame:
    """Of each prefix the shares of its bytecode by line, as the looks saw it."""
    looks = [look for look in Looks(recording).python() if look.seconds > 0]
    total: dict[str, float] = {}
    for look in looks:
        total[look.prefix] = total.get(look.prefix, 0.0) + look.seconds
    rows = [
        (k.prefix, k.seconds / total[k.prefix], k.file, min(k.line, _LINES), k.function, LOOKS)
        for k in looks
    ]
    frame = pd.DataFrame(rows, columns=["prefix", "share", *_WHERE])
    return frame.astype({"prefix": object, "share": float, "line": float})


def _place(label: str) -> tuple[str, int, str]:
    """File, line and function; nothing of what is no number."""
    try:
        file, line, function = place(label)
    except ValueError:  # "²" is a digit and no number
        return "", 0, ""
    return file, min(line, _LINES), function


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
