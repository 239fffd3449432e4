"""Work that an earlier compute had done: of the same keys, or of others for the same purpose.

Where an optimizer chose columns for each compute, or fused with the work of each what is the same
in both, keys differ; what plans have in common is told by the rows of PART. Of tasks with other
work besides, looks at both computes tell how much of their time was in the same functions, and that
the earlier one took as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import sqrt
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.profiles.looks import ERRORS
from stageprof_runtime.event import STATUS

if TYPE_CHECKING:
    from stageprof_collectors.account.calls import Calls
    from stageprof_collectors.recording import Recording

Floats = NDArray[np.float64]

#: Of what an optimizer made whose columns are not known so much at least is the same.
UNKNOWN: Final = 0.5
#: Readers that read nothing of columns that they were not asked for.
COLUMNAR: Final = ("ReadParquet", "FusedIO", "FusedParquetIO")
#: What usually takes less than this is no work that is done again: what each such task costs beside
#: it is more, and others tell of that.
TRIFLE_NS: Final = 300_000
#: Looks at the tasks of a compute that say something of its time.
LOOKS: Final = 8
#: What runs the tasks within a task, and functions of C that it calls, such as numpy's ufuncs: who
#: is seen there may be in the same function or not.
_RUNS: Final = "_task_spec.py"
_MACHINERY: Final = _RUNS, ""
_DONE: Final = STATUS.index("memory")
#: Characters of the shortest end of a name that tells it from all others.
_TOKEN: Final = 32


class Again:
    """What the region's own graphs did again.

    Attributes:
        rows: the runs (rows of `Timeline.runs`) that did.
        low, high: what part of each was done again, at least and at most.
        layers: the user's layers that were.
        of: for each run the index of that in `layers`.
        alone: for each run whether it did nothing else.
    """

    def __init__(self, recording: Recording, calls: Calls) -> None:
        size = len(recording.timeline.runs["run"])
        low, high = np.zeros(size), np.zeros(size)
        of, alone = np.zeros(size, np.int64), np.ones(size, np.bool_)
        self.layers: list[str] = list(recording.layered.names)
        repeats = calls.repeats
        low[repeats] = high[repeats] = 1.0
        of[repeats] = recording.layered.of[repeats]
        for what, piece, least, most in _Plans(recording, calls.own).again():
            rows = piece.rows[high[piece.rows] < most]
            low[rows], high[rows] = least, most
            of[rows], alone[rows] = len(self.layers), piece.alone
            self.layers.append(what)
        high[_trifles(recording, np.flatnonzero(high > 0), of)] = 0.0
        self.rows: Ints = np.flatnonzero(high > 0)
        self.low, self.high = low[self.rows], high[self.rows]
        self.of, self.alone = of[self.rows], alone[self.rows]


def _trifles(recording: Recording, rows: Ints, of: Ints) -> Ints:
    """Runs of layers that do next to nothing, as what stands for persisted pieces does."""
    runs = recording.timeline.runs
    took = pd.Series((runs["stop"] - runs["start"])[rows])
    usual = took.groupby(of[rows]).transform("median").to_numpy()
    found: Ints = rows[usual < TRIFLE_NS]
    return found


class _Part(NamedTuple):
    """A row of PART."""

    name: str
    how: str
    common: int
    columns: int


class _Piece(NamedTuple):
    """What several plans have in common, as one of them ran it."""

    rows: Ints
    layer: int
    alone: bool
    #: of its columns those that the first plan has as well; 0, 0 if not known
    common: int
    columns: int


class _Plans:
    """The plans of a recording that have something in common, and the runs that it came to."""

    def __init__(self, recording: Recording, own: list[int]) -> None:
        self._recording = recording
        self._functions = _Functions(recording)
        runs, self._owner = recording.timeline.runs, recording.replay.owner
        layered = recording.layered
        rows = np.flatnonzero((runs["status"] == _DONE) & np.isin(self._owner, own))
        order = rows[np.argsort(layered.of[rows], kind="stable")]
        layers, starts = np.unique(layered.of[order], return_index=True)
        parts = np.split(order, starts)[1:]  # before the first there is nothing
        self._rows = dict(zip(layers.tolist(), parts, strict=True))
        self._layers: defaultdict[str, list[int]] = defaultdict(list)
        for layer in self._rows:
            self._layers[_token(layered.names[layer])].append(layer)

    def again(self) -> Iterator[tuple[str, _Piece, float, float]]:
        """The user's layer, what ran again, and what part of its time that was."""
        for (what, kind), plans in self._parts().items():
            pieces = [piece for parts in plans.values() for piece in self._pieces(parts)]
            for piece in pieces[1:]:
                first = pieces[0]
                if piece.layer != first.layer and self._later(piece, first):
                    yield what, piece, *self._part(first, piece, kind)

    def _parts(self) -> Mapping[tuple[str, str], Mapping[int, list[_Part]]]:
        """By what is common and of what kind: the parts of each plan, in order."""
        table, strings = self._recording.timeline.read("part", "t"), self._recording.store.strings
        found: dict[tuple[str, str], dict[int, list[_Part]]] = {}
        names = ("t", "name", "label", "variable", "how", "count", "total")
        columns = (table[name].tolist() for name in names)
        for t, name, label, kind, how, common, all_ in zip(*columns, strict=True):
            plans = found.setdefault((strings[label], strings[kind]), {})
            plans.setdefault(t, []).append(_Part(strings[name], strings[how], common, all_))
        return {what: dict(sorted(plans.items())) for what, plans in found.items()}

    def _pieces(self, parts: list[_Part]) -> list[_Piece]:
        """The first of the layers that a part may have run as that did run, if one did."""
        for part in parts:
            layers = self._layers.get(_token(part.name))
            if layers:
                rows = np.concatenate([self._rows[layer] for layer in layers])
                most = max(layers, key=lambda layer: len(self._rows[layer]))
                return [_Piece(rows, most, not part.how, part.common, part.columns)]
        return []

    def _later(self, piece: _Piece, first: _Piece) -> bool:
        """Whether it was another graph, handed over later."""
        return bool(self._owner[piece.rows].min() > self._owner[first.rows].min())

    def _part(self, first: _Piece, piece: _Piece, kind: str) -> tuple[float, float]:
        """What part of a piece's time the first had taken as well, at least and at most."""
        tasks = min(1.0, len(first.rows) / len(piece.rows))
        if not piece.alone or not first.alone:
            low, high = self._shared(first, piece)
            return tasks * low, tasks * high
        same = piece.common / piece.columns if piece.columns > 0 else UNKNOWN
        same = min(1.0, max(0.0, same))
        return tasks * same, tasks * (same if kind.startswith(COLUMNAR) else 1.0)

    def _shared(self, first: _Piece, piece: _Piece) -> tuple[float, float]:
        """The same where one of them has other work too."""
        took, took_first = self._took(piece), self._took(first)
        if took <= 0:
            return 0.0, 0.0
        (looks, now), (looks_first, before) = self._functions.of(piece), self._functions.of(first)
        looks, ratio = min(looks, looks_first), took_first / took
        if looks < LOOKS:
            return 0.0, min(1.0, ratio)
        same = {f: min(part, before.get(f, 0.0) * ratio) for f, part in now.items()}
        either = sum(same.values())
        certain = either - same.get(_MACHINERY, 0.0)
        return max(0.0, certain - _off(certain, looks)), min(
            1.0, ratio, either + _off(either, looks)
        )

    def _took(self, piece: _Piece) -> float:
        runs = self._recording.timeline.runs
        return float((runs["stop"] - runs["start"])[piece.rows].mean())


class _Functions:
    """What the tasks of a piece were seen in."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._looks = recording.timeline.read("flame", "t")
        self._known: dict[int, tuple[int, Mapping[tuple[str, str], float]]] = {}
        self._texts = {text: i for i, text in enumerate(recording.store.strings)}

    def of(self, piece: _Piece) -> tuple[int, Mapping[tuple[str, str], float]]:
        """Looks, and parts of their time by the innermost function: file and name."""
        if piece.layer not in self._known:
            self._known[piece.layer] = self._read(piece)
        return self._known[piece.layer]

    def _read(self, piece: _Piece) -> tuple[int, Mapping[tuple[str, str], float]]:
        runs, looks = self._recording.timeline.runs, self._looks
        prefix = self._texts.get(self._recording.layered.prefixes[piece.layer], -1)
        begun, ended = runs["start"][piece.rows].min(), runs["stop"][piece.rows].max()
        mine = (looks["name"] == prefix) & (looks["t"] >= begun) & (looks["t"] <= ended)
        rows = np.flatnonzero(mine)
        nodes = self._recording.nodes
        found: defaultdict[tuple[str, str], float] = defaultdict(float)
        at = nodes.of(looks["place"][rows], looks["node"][rows]).tolist()
        for node, ns in zip(at, looks["total"][rows].tolist(), strict=True):
            frame = nodes.frames[node]
            inner = frame.file.endswith(_RUNS)
            found[_MACHINERY if inner else (frame.file, frame.name)] += max(0, ns)
        whole = sum(found.values()) or 1.0
        return int(looks["count"][rows].sum()), {f: ns / whole for f, ns in found.items()}


def _off(part: float, looks: int) -> float:
    """By how much a part of so many looks may be off by chance."""
    part = min(1.0, part)
    return ERRORS * sqrt(max(part * (1 - part), 0.25 / looks) / looks)


def _token(name: str) -> str:
    """What tells a name of a plan from all others, whatever was fused into its tasks."""
    token = name.rpartition("-")[2]
    return token if len(token) >= _TOKEN else name
