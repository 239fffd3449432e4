"""Into how many pieces a collection is cut, where, and how to have fewer of them."""

from __future__ import annotations

import math
import re
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.batch import batch, rounded
from stageprof_collectors.findings.crowd import Crowd, is_piece
from stageprof_collectors.findings.finding import Fix
from stageprof_collectors.findings.fused import Begun, begun
from stageprof_collectors.findings.larger import READS, Pieces, larger
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.upstream import FEW, Upstream, made_by, source, upstream
from stageprof_collectors.tables.crew import Crew

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: A piece may have so many bytes: larger ones leave no room for copies in common workers.
LARGEST: Final = 128e6
#: Pieces of unknown size should grow no more: their tasks need several times as much memory.
_BLIND: Final = 10
#: Of so many pieces that are cut up larger ones may be cut into fewer: what cuts them for windows,
#: or by groups (xarray's `rolling` and `groupby` do), goes by their size.
_CUT: Final = 10
#: Of a thread's memory, where there is too little: what is made of a piece takes several times as
#: much, and results stay.
_ROOM: Final = 0.05
#: Blocks with a margin of their neighbours' (`map_overlap`), fused with others or not; and what
#: cuts margins and puts them together: so many for each block, however large it is.
_OVERLAP: Final = re.compile(r"(.*-)?overlap(-.*)?")
_MARGINS: Final = ("getitem", "concatenate", "concatenate-getitem")
#: What is fused with them has their line, and an array in memory, of which they are cut, no tasks.
_MARGINAL: Final = re.compile(rf"(.*-)?({'|'.join(_MARGINS)})")
#: What a rechunk cuts pieces into, and what it makes of these.
_SPLIT, _MERGED = "rechunk-split", "rechunk-merge"
#: The name of a block of a text file, by where it begins.
_BLOCK: Final = re.compile(r"read-block-(\d{1,15})")


class Chunking:
    """The pieces of a crowd of chunked collections that matter: those of the layer with most."""

    def __init__(self, recording: Recording, crowd: Crowd) -> None:
        self._recording = recording
        self._crowd = crowd
        self._runs = recording.timeline.runs

    def fewer(self, overhead: Overhead, largest: float = LARGEST) -> int:
        """How many pieces should become one, of at most so many bytes; 1: nothing is to gain."""
        most, made, number = float(_BLIND), self.made, self.pieces.number
        chosen = bool(made.number) and not made.cut and not made.pairs
        if self.pieces.nbytes:
            most = min(largest, self._room) / max(self.pieces.largest, made.nbytes * chosen)
        return rounded(batch(overhead, min(number, made.number) if chosen else number, most))

    def larger(self, each_s: float, k: int) -> Fix:
        """What to do where a task costs `each_s` beside its work: pieces `k` times as large."""
        made = self.made
        opened = source(self._recording, made.row) if made.cut >= _CUT else None
        return larger(each_s, self.pieces, k, made, block=self._block, opened=opened)

    @property
    def _room(self) -> float:
        """Bytes that a piece may have: where memory was short a part of what a thread has."""
        recording = self._recording
        sizes = [each.limit for each in recording.memory.limits.values() if each.limit]
        crew = Crew(recording)
        if not sizes or not crew.threads or not shortage.both(recording):
            return math.inf
        return _ROOM * min(sizes) * len(crew.fullest) / crew.threads

    # -- the pieces ---------------------------------------------------------------------------

    @cached_property
    def _rows(self) -> Ints:
        """Runs that made pieces, but for margins of blocks and what a rechunk puts together."""
        types = np.array([is_piece(name) for name in self._recording.store.strings])
        crowd = self._crowd.rows
        rows: Ints = crowd[types[self._runs["type"][crowd]]]
        rows = rows if len(rows) else crowd
        prefixes = self._recording.prefixes[rows]
        parts = np.isin(prefixes, _MARGINS if self._overlapping else ())
        if _MERGED in prefixes:
            parts |= prefixes == _SPLIT
        whole = rows[~parts]
        return whole if len(whole) else rows

    @cached_property
    def _overlapping(self) -> bool:
        prefixes: NDArray[np.object_] = self._recording.prefixes[self._crowd.rows]
        return any(map(_OVERLAP.fullmatch, set(prefixes.tolist())))

    @cached_property
    def _of_layer(self) -> Ints:
        layers: Ints = self._recording.groups.of_run[self._rows]
        return layers

    @cached_property
    def _begun(self) -> dict[str, Begun]:
        return begun(self._recording)

    @cached_property
    def _layer(self) -> int:
        """The layer with most bytes; with most pieces where nobody told how large they are."""
        layers, nbytes = self._of_layer, self._runs["nbytes"][self._rows]
        sums, number = np.bincount(layers, weights=nbytes), np.bincount(layers)
        sums[number * 2 < number.max()] = 0  # few large pieces that are cut up are not the problem
        return int(np.argmax(sums if sums.any() else number))

    @cached_property
    def pieces(self) -> Pieces:
        """How many, and of what size."""
        rows = self._rows[self._of_layer == self._layer]
        kind = self._recording.store.strings[int(self._runs["type"][rows[0]])]
        frames = "ndarray" not in kind if is_piece(kind) else self._framed(rows)
        told = is_piece(kind) or not kind
        usual = float(np.median(self._runs["nbytes"][rows])) if told else 0.0
        first = self._begun.get(self._recording.groups.rows[self._layer].layer)
        if first is not None:
            frames, usual = False, max(usual, first.largest)
        graphs = self._recording.timeline.graph_rows[rows]
        number = int(np.bincount(graphs + 1).max())
        most = self._largest(len(rows)) if told else 0.0
        return Pieces(number, usual, frames, max(usual, most))

    def _framed(self, rows: Ints) -> bool | None:
        """Of results that are no pieces, as what a mean is made of is: arrays have more indices."""
        key = self._recording.store.keys(self._runs["key"][rows[:1]])[0]
        return False if key.count(", ") > 1 else None

    def _largest(self, number: int) -> float:
        """The usual size in the layer with the largest pieces that grow with `number` others.

        What is left of a reduction is tiny, and larger only if what was reduced is larger too.
        """
        nbytes = pd.Series(self._runs["nbytes"][self._rows])
        usual = nbytes.groupby(self._of_layer).agg(["size", "median"])
        return float(usual["median"][usual["size"] * FEW >= number].max())

    # -- where they are made ------------------------------------------------------------------

    @cached_property
    def made(self) -> Upstream:
        """The layer that sets the number of the pieces: one that reads, if there is one."""
        layer = self._recording.groups.rows[self._layer]
        made = self._up(layer)
        first = self._begun.get(made.row.layer)
        if first is None:
            return made
        return made._replace(row=first.row, number=first.number, nbytes=float(first.nbytes))

    def _up(self, layer: Row) -> Upstream:
        """The same among the layers that ran, which may be fused ones."""
        recording, groups = self._recording, self._recording.groups
        of_run, number = np.unique(groups.of_run[self._crowd.rows], return_counts=True)
        # What reads few of many pieces is another matter: they are cut, or another frame is joined.
        many = number * FEW >= self.pieces.number
        of_run, number = of_run[many], number[many]
        rows = [groups.rows[i] for i in of_run[np.argsort(-number, kind="stable")].tolist()]
        reads: Row | None = next((row for row in rows if READS.match(row.prefix)), None)
        if reads is None and self._overlapping:
            return self._overlapped(layer)
        return upstream(recording, layer) if reads is None else made_by(recording, reads)

    def _overlapped(self, layer: Row) -> Upstream:
        """What makes the blocks of which margins are taken; of no line where that is not known."""
        first = source(self._recording, layer, _MARGINAL)
        if first is not None:
            return made_by(self._recording, first)
        made = made_by(self._recording, layer)
        return made._replace(row=layer._replace(file="", line=0))

    @property
    def _block(self) -> int | None:
        """Bytes of a file that are read at once now; 0 if files are read whole, None: not known."""
        names = (_BLOCK.fullmatch(name) for name in self._recording.store.strings)
        starts = {int(found[1]) for found in names if found}
        return min(starts - {0}, default=0) if starts else None
