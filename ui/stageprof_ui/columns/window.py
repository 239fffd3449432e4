"""What a window of time shows of boxes that are too many to be sent to a browser.

From afar, the share of each pixel: the same picture as `browser/picture.js` draws, for every box
adds the part of it that lies in a pixel. Nearer, the boxes themselves, which the browser draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stageprof_ui.columns.boxes import Boxes, Floats, Ints

#: Group of what is not selected; there are fewer colours.
MUTED: Final = 31
#: No group: nothing is in the pixel.
NOTHING: Final = 255
#: Shares are sent as parts of this.
FULL: Final = 2**16 - 1
#: Lines and boxes that are summed up at once: some ten megabytes.
_LINES, _CHUNK = 32, 2**19

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Colouring:
    """The group of each box, by its step and what else colours it.

    Attributes:
        by_step: group of each step.
        by_task: group of each task by its `column`.
        column: "layer" or "gil", the column of `Boxes` that colours tasks; "" if their step does.
        compute: the step of tasks.
        steps, layers: which are selected.
    """

    by_step: Bytes
    by_task: Bytes
    column: str
    compute: int
    steps: NDArray[np.bool_]
    layers: NDArray[np.bool_]

    def groups(self, boxes: Boxes) -> Bytes:
        """One group per box; `count` where it is not selected."""
        found = self.by_step[boxes.step]
        if self.column:
            own = self.by_task[getattr(boxes, self.column)]
            found = np.where(boxes.step == self.compute, own, found)
        if self.steps.all() and self.layers.all():
            return found
        return np.where(self.chosen(boxes), found, self.count).astype(np.uint8)

    @property
    def count(self) -> int:
        """How many groups there are; the one after them is of what is not selected."""
        return int(max(self.by_step.max(initial=0), self.by_task.max(initial=0))) + 1

    def chosen(self, boxes: Boxes) -> NDArray[np.bool_]:
        """Whether each box is selected."""
        return self.steps[boxes.step] & self.layers[boxes.layer]


@dataclass(frozen=True)
class Picture:
    """Lines x pixels: the group that fills most of each (or `NOTHING`), and its busy share."""

    group: Bytes
    #: uint16, parts of `FULL`
    share: NDArray[np.uint16]


def extents(boxes: Boxes, rows: Sequence[int], begin: float, end: float) -> list[tuple[int, int]]:
    """Of each row the first and one past the last box that may lie in a window (in units)."""
    # Of the type of the starts, for which these would be converted else.
    ends = np.ceil(np.clip([begin, end], 0, 2**32 - 1)).astype(boxes.start.dtype)
    found = []
    for row in rows:
        a, b = int(boxes.offsets[row]), int(boxes.offsets[row + 1])
        first, last = np.searchsorted(boxes.start[a:b], ends)
        found.append((a + max(int(first) - 1, 0), a + int(last)))
    return found


def within(boxes: Boxes, rows: Sequence[int], begin: float, end: float, most: int) -> Boxes | None:
    """The boxes of some rows that may lie in a window; None if they are more than `most`."""
    spans = extents(boxes, rows, begin, end)
    if sum(b - a for a, b in spans) > most:
        return None
    counts = np.zeros(len(boxes.rows), np.int64)
    parts: list[tuple[int, int]] = [(0, 0)] * len(boxes.rows)
    for row, (a, b) in zip(rows, spans, strict=True):
        counts[row], parts[row] = b - a, (a, b)
    return replace(taken(boxes, parts), offsets=np.append(0, np.cumsum(counts)).astype(np.uint32))


def taken(boxes: Boxes, parts: Sequence[tuple[int, int]]) -> Boxes:
    """The boxes of some parts, behind each other; their offsets are none."""
    names = ("start", "length", "step", "layer", "gil", "run")
    some = parts or [(0, 0)]
    columns: dict[str, Any] = {
        n: np.concatenate([getattr(boxes, n)[a:b] for a, b in some]) for n in names
    }
    return replace(boxes, **columns, offsets=np.zeros(1, np.uint32))


def picture(
    boxes: Boxes,
    colouring: Colouring,
    lines: Sequence[Sequence[int]],
    window: tuple[float, float],
    width: int,
) -> Picture:
    """What each pixel of each line shows.

    Args:
        boxes: all boxes.
        colouring: their groups.
        lines: for each line of the picture the rows that it adds up.
        window: from and to, in units.
        width: pixels.
    """
    group = np.full((len(lines), width), NOTHING, np.uint8)
    share = np.zeros((len(lines), width), np.uint16)
    for first in range(0, len(lines), _LINES):
        some = slice(first, first + _LINES)
        busy = _busy(boxes, colouring, lines[some], window, width)
        capacity = np.array([max(len(rows), 1) for rows in lines[some]])[:, None]
        group[some], part = _dominance(busy)
        share[some] = np.round(FULL * np.minimum(part / capacity, 1.0))
    return Picture(group, share)


def _dominance(busy: Floats) -> tuple[Bytes, Floats]:
    """Of lines x groups x pixels the group with most; what is not selected, if it is alone."""
    muted, rest = busy[:, -1], busy[:, :-1]
    total = rest.sum(axis=1)
    other = np.where(muted > 0, MUTED, NOTHING)
    group = np.where(total > 0, rest.argmax(axis=1), other).astype(np.uint8)
    return group, np.where(total > 0, total, muted)


def _busy(
    boxes: Boxes,
    colouring: Colouring,
    lines: Sequence[Sequence[int]],
    window: tuple[float, float],
    width: int,
) -> Floats:
    """Of lines x groups x pixels how much of the pixel is filled, rows of a line added up."""
    groups = colouring.count + 1
    size = len(lines) * groups * width
    busy, steps = np.zeros(size), np.zeros(size + 1)
    scale = width / (window[1] - window[0])
    for part, line in _chunks(boxes, lines, window):
        base = (line * groups + colouring.groups(part)) * width
        start = part.start.astype(np.float64)
        a = ((start - window[0]) * scale).clip(0, width)
        b = ((start + part.length - window[0]) * scale).clip(0, width)
        first = np.minimum(a.astype(np.int64), width - 1)
        last = np.minimum(b.astype(np.int64), width - 1)
        wide = last > first
        # The pixel in which a box begins has all of it, or what is left of the pixel ...
        head = np.where(wide, first + 1, b) - a
        busy += np.bincount(base + first, weights=head, minlength=size)
        if wide.any():  # ... the one in which it ends the rest, and those between are full.
            base, first, last, b = base[wide], first[wide], last[wide], b[wide]
            busy += np.bincount(base + last, weights=b - last, minlength=size)
            steps += np.bincount(base + first + 1, minlength=size + 1)
            steps -= np.bincount(base + last, minlength=size + 1)
    busy += np.cumsum(steps[:-1])
    return busy.reshape(len(lines), groups, width)


def _chunks(
    boxes: Boxes, lines: Sequence[Sequence[int]], window: tuple[float, float]
) -> Iterator[tuple[Boxes, Ints]]:
    """The boxes of some lines in a window, many at once, each with the number of its line."""
    parts, numbers, waiting = [], [], 0
    for number, rows in enumerate(lines):
        for a, b in extents(boxes, rows, *window):
            for low, high in pairwise([*range(a, b, _CHUNK), b]):
                parts.append((low, high))
                numbers.append(number)
                waiting += high - low
                if waiting >= _CHUNK:
                    yield _chunk(boxes, parts, numbers)
                    parts, numbers, waiting = [], [], 0
    if parts:
        yield _chunk(boxes, parts, numbers)


def _chunk(
    boxes: Boxes, parts: Sequence[tuple[int, int]], numbers: Sequence[int]
) -> tuple[Boxes, Ints]:
    return taken(boxes, parts), np.repeat(numbers, [b - a for a, b in parts])


def nearest(boxes: Boxes, rows: Sequence[int], t: float, slack: float) -> tuple[int, int] | None:
    """Row and number of the box at an instant, or nearest to it within `slack` units."""
    best: tuple[float, int, int] | None = None
    beyond = math.nextafter(t + slack, math.inf)  # a window is open at its end
    for row, (a, b) in zip(rows, extents(boxes, rows, t, beyond), strict=True):
        for i in range(a, min(b, a + 3)):
            start = float(boxes.start[i])
            off = max(start - t, t - start - float(boxes.length[i]), 0.0)
            if off <= slack and (best is None or off < best[0]):
                best = off, row, i
    return best and best[1:]


def only(boxes: Boxes, row: int, number: int) -> Boxes:
    """One box alone in its row."""
    offsets = (np.arange(len(boxes.rows) + 1) > row).astype(np.uint32)
    return replace(taken(boxes, [(number, number + 1)]), offsets=offsets)


@dataclass(frozen=True)
class Sums:
    """What lies in a rectangle: boxes and busy units, by layer and by step of what has no layer."""

    count: int
    busy: float
    #: (layer, 0 if none; step; boxes; units), most units first
    parts: Sequence[tuple[int, int, int, float]]


def sums(
    boxes: Boxes, colouring: Colouring, rows: Sequence[int], window: tuple[float, float]
) -> Sums:
    """The sums of the selected boxes of some rows, each as far as it is in a window."""
    counts: dict[tuple[int, int], tuple[int, float]] = {}
    for part, _ in _chunks(boxes, [rows], window):
        start, stop = part.start.astype(np.float64), part.start + part.length.astype(np.float64)
        inside = np.minimum(stop, window[1]) - np.maximum(start, window[0])
        mine = (inside > 0) & colouring.chosen(part)
        which = part.layer[mine].astype(np.int64) * 256 + np.where(
            part.layer[mine] > 0, 0, part.step[mine]
        )
        names, at = np.unique(which, return_inverse=True)
        number, units = np.bincount(at), np.bincount(at, weights=inside[mine])
        for name, n, u in zip(names.tolist(), number.tolist(), units.tolist(), strict=True):
            before = counts.get(divmod(name, 256), (0, 0.0))
            counts[divmod(name, 256)] = before[0] + n, before[1] + u
    parts = sorted(((*name, n, u) for name, (n, u) in counts.items()), key=lambda p: -p[3])
    return Sums(sum(p[2] for p in parts), sum(p[3] for p in parts), parts)
