"""Boxes in rows over time, packed for the browser, and the picture that is drawn of them.

The boxes of a row are in order and do not overlap, so that one under the pointer is found by
halving, and the busy share of a pixel is exact at any zoom. `picture` is what the browser's
renderer (`browser/picture.js`) must draw, made from cumulative sums.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Times are packed in 32 bits, of microseconds where they fit.
_UNIT_NS: Final = 1_000
_MOST: Final = 2**32 - 1
#: Things that overlap in a row are put below each other in up to so many; the rest is left out
#: of the picture, and said.
SUBROWS: Final = 16


@dataclass(frozen=True)
class Row:
    """One row of boxes: what it is called, which process it belongs to, and what it shows."""

    label: str
    #: index in `Recording.store.places`, -1 for the path
    place: int
    #: "path", "client", "scheduler", "thread", "transfer", "spill", "bytes", "waiting"
    kind: str
    #: identifier of the thread that ran tasks here; 0 of what is none
    thread: int = 0


@dataclass(frozen=True)
class Boxes:
    """All boxes of a recording.

    Attributes:
        unit_ns: what one unit of `start` and `length` is.
        start, length: uint32, units since the region's start; one entry per box.
        step: uint8, code of the step.
        layer: uint16, index in `layers`; 0 is none.
        gil: uint8, tenths of the time spent waiting for the GIL plus 1; 0 is unknown.
        run: int32, row of the table of tasks; -1 if the box is no task.
        offsets: uint32, first box of each row, and the end (rows + 1 entries).
        rows: what the rows are.
        layers: names of layers by index; the first is "".
        left_out: how many boxes no row had room for, by the kind of their row; and what else the
            picture does not hold (`timeline.CLOCK`, `untold.THREADLESS`).
    """

    unit_ns: int
    start: NDArray[np.uint32]
    length: NDArray[np.uint32]
    step: NDArray[np.uint8]
    layer: NDArray[np.uint16]
    gil: NDArray[np.uint8]
    run: NDArray[np.int32]
    offsets: NDArray[np.uint32]
    rows: tuple[Row, ...]
    layers: tuple[str, ...] = ("",)
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.start)

    def through(self, column: Callable[[Any], Any]) -> Boxes:
        """The same with each large column replaced by what is made of it."""
        large = ("start", "length", "step", "layer", "gil", "run")
        return replace(self, **{name: column(getattr(self, name)) for name in large})

    def seconds(self) -> tuple[Floats, Floats]:
        """Start and stop of each box in seconds since the region's start."""
        unit = self.unit_ns / 1e9
        start = self.start.astype(np.float64)
        return start * unit, (start + self.length) * unit


#: Of a row: start, length, step, layer, gil, run, as `Boxes` has them.
_Part = tuple[NDArray[Any], ...]
_TYPES: Final = (np.uint32, np.uint32, np.uint8, np.uint16, np.uint8, np.int32)


class Pile:
    """Gathers boxes row by row, each packed at once; `boxes` puts them together.

    Args:
        origin: where times begin, ns.
        end: the last instant of any box, ns; what reaches farther is cut there.
    """

    def __init__(self, origin: int, end: int) -> None:
        self.rows: list[Row] = []
        self.left_out: Counter[str] = Counter()
        self._origin = origin
        self._unit = max(_UNIT_NS, -(-(end - origin) // _MOST))
        self._parts: list[_Part] = []

    def add(
        self,
        row: Row,
        start: Ints,
        stop: Ints,
        step: Ints | int,
        *,
        layer: Ints | int = 0,
        gil: Ints | int = 0,
        run: Ints | int = -1,
    ) -> None:
        """One row of boxes (ns) that do not overlap, in any order."""
        order = np.argsort(start, kind="stable")
        a, b = (np.maximum(t[order] - self._origin, 0) for t in (start, stop))
        first, last = (np.minimum(t, _MOST) for t in (a // self._unit, -(-b // self._unit)))
        last[:-1] = np.minimum(last[:-1], first[1:])  # rounded up, it must not reach into the next
        own = (step, np.minimum(layer, 2**16 - 1), gil, run)
        spread = (np.broadcast_to(np.asarray(column), len(order))[order] for column in own)
        columns = (first, np.maximum(last - first, 0), *spread)
        self.rows.append(row)
        self._parts.append(tuple(c.astype(t) for c, t in zip(columns, _TYPES, strict=True)))

    def add_overlapping(
        self,
        row: Row,
        start: Ints,
        stop: Ints,
        step: Ints | int,
        *,
        layer: Ints | int = 0,
        run: Ints | int = -1,
    ) -> None:
        """Boxes that may overlap: in as few rows below each other as hold them all."""
        level, left = levels(start.tolist(), stop.tolist())
        self.left_out[row.kind] += left
        columns = [np.broadcast_to(np.asarray(c), len(start)) for c in (step, layer, run)]
        for i in range(int(level.max(initial=-1)) + 1):
            mine = level == i
            what, layers, runs = (column[mine] for column in columns)
            self.add(row, start[mine], stop[mine], what, layer=layers, run=runs)

    def boxes(self, layers: Sequence[str] = ("",)) -> Boxes:
        """All that was added."""
        none: _Part = tuple(np.zeros(0, t) for t in _TYPES)
        start, length, step, layer, gil, run = (
            np.concatenate(column) for column in zip(none, *self._parts, strict=True)
        )
        offsets = np.cumsum([0, *(len(part[0]) for part in self._parts)]).astype(np.uint32)
        columns = start, length, step, layer, gil, run, offsets
        return Boxes(self._unit, *columns, tuple(self.rows), tuple(layers), dict(+self.left_out))


def levels(start: Iterable[int], stop: Iterable[int]) -> tuple[Ints, int]:
    """Into which sub-row each of some intervals goes, and how many go nowhere (level -1).

    The classic greedy partition: in order of their starts, each takes the first row that is free.
    """
    spans = list(zip(start, stop, strict=True))
    level = np.full(len(spans), -1, np.int64)
    busy: list[tuple[int, int]] = []  # (until when, which row)
    free = list(range(SUBROWS))
    for i in sorted(range(len(spans)), key=lambda i: spans[i][0]):
        begin, end = spans[i]
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            level[i] = heapq.heappop(free)
            heapq.heappush(busy, (end, int(level[i])))
    return level, int((level < 0).sum())


def picture(
    boxes: Boxes,
    group: NDArray[np.uint8],
    shown: Sequence[Sequence[int]],
    window: tuple[float, float],
    width: int,
) -> tuple[NDArray[np.int64], Floats]:
    """What each pixel of each line shows: the group that fills most of it, and the busy share.

    Args:
        boxes: all boxes.
        group: uint8 per step or layer or whatever colours them; one entry per box.
        shown: for each line of the picture the rows that it adds up.
        window: from and to, in units.
        width: pixels.

    Returns:
        Group (lines x width; -1 where nothing is), and share of the pixel's time, 0 to 1: of the
        rows of the line that hold boxes at all.
    """
    edges = np.linspace(window[0], window[1], width + 1)
    dominant = np.full((len(shown), width), -1, np.int64)
    share = np.zeros((len(shown), width))
    for line, rows in enumerate(shown):
        busy = sum((_busy(boxes, group, row, edges) for row in rows), start=np.zeros((256, width)))
        total = busy.sum(axis=0)
        dominant[line] = np.where(total > 0, busy.argmax(axis=0), -1)
        share[line] = np.clip(total / (max(len(rows), 1) * np.diff(edges)), 0, 1)
    return dominant, share


def _busy(boxes: Boxes, group: NDArray[np.uint8], row: int, edges: Floats) -> Floats:
    """Units of each group (256) in each pixel of one row, from cumulative sums."""
    out = np.zeros((256, len(edges) - 1))
    a, b = int(boxes.offsets[row]), int(boxes.offsets[row + 1])
    start = boxes.start[a:b].astype(np.float64)
    stop = start + boxes.length[a:b]
    for which in np.unique(group[a:b]):
        mine = group[a:b] == which
        x = np.column_stack([start[mine], stop[mine]]).ravel()
        done = np.cumsum(stop[mine] - start[mine])
        y = np.column_stack([done - (stop[mine] - start[mine]), done]).ravel()
        out[which] = np.diff(np.interp(edges, x, y))
    return out
