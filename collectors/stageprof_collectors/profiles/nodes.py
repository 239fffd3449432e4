"""The trees of stacks of all places as one: equal stacks of different processes are one node.

Whatever a recording claims, the result is a tree: a place's parent has a smaller number than it,
what contradicts that is nobody's child, and what is nested deeper than `DEEPEST` is the node around
it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.storage.columns import Ints
from stageprof_collectors.storage.store import Store

#: Numbers of nodes beyond this are nobody's: a process tells of some ten thousand.
NUMBERS: Final = 1 << 31
#: Frames of a stack that are kept.
DEEPEST: Final = 512
#: What stands for frames of which the recording says nothing.
UNKNOWN: Final = "(not recorded)"

_SHIFT: Final = 32
#: Where a file is no program of the user's.
_LIBRARIES: Final = re.compile(
    r"<frozen|/(?:site|dist)-packages/"
    r"|/lib(?:64)?/python3\.[^/]+/|/(?:Python3\d+|envs/[^/]+)/Lib/"  # the latter on Windows
    r"|(?:^|/)stageprof_(?:(?:runtime|collectors|ui)/|pytest\.py$)"
)


def is_library(file: str) -> bool:
    """Whether a frame's file is none of the user's, as far as its path tells."""
    return _LIBRARIES.search(file.replace("\\", "/")) is not None


class Frame(NamedTuple):
    """A function on a stack; of the user's functions the line is the one that was running."""

    name: str
    file: str
    line: int

    @property
    def is_users(self) -> bool:
        """Whether a line of the user's was running, as far as its path tells."""
        return bool(self.file) and self.line > 0 and not is_library(self.file)

    @property
    def path(self) -> str:
        """The file with slashes, wherever it was written."""
        return self.file.replace("\\", "/")


class Nodes:
    """The joined tree.

    Attributes:
        parent: node around each node, -1 for outermost ones; smaller than the node.
        frames: the frame of each node. Node 0 is unknown.
        levels: first node of each depth but the outermost, from the outside in, and their number.
    """

    def __init__(self, store: Store) -> None:
        table = store.table("node")
        rows = _sound(table["number"], table["place"])
        number, place = table["number"][rows], table["place"][rows]
        own = (place << _SHIFT) | number
        around = table["parent"][rows]
        up = _find(own, np.where((around >= 0) & (around < number), (place << _SHIFT) | around, -1))
        # What says that it is outermost has no parent (-1); what names none that is there, the
        # unknown.
        lost = (up < 0) & (around != -1)
        self._own = own
        kinds, which = _kinds([table[name][rows] for name in ("name", "file", "line")])
        strings = store.strings
        named = [Frame(strings[n], strings[f], int(line)) for n, f, line in kinds.T.tolist()]
        parent, kind, self.levels, self._node = _merged(up, lost, which)
        self.parent: Ints = np.array([-1, *parent], np.int64)
        self.frames: list[Frame] = [Frame(UNKNOWN, "", 0), *(named[k] for k in kind)]

    def __len__(self) -> int:
        return len(self.frames)

    def of(self, places: Ints, numbers: Ints) -> Ints:
        """The node of each place's number; 0 where the recording has no such node."""
        inside = (numbers >= 0) & (numbers < NUMBERS)
        at = _find(self._own, np.where(inside, (places << _SHIFT) | numbers, -1))
        return np.where(at >= 0, self._node[at] if len(self._node) else 0, 0)

    def stack(self, node: int) -> tuple[Frame, ...]:
        """The frames from the outermost to a node."""
        found: list[Frame] = []
        while node >= 0:
            found.append(self.frames[node])
            node = int(self.parent[node])
        return tuple(found[::-1])


def _sound(number: Ints, place: Ints) -> Ints:
    """Rows with a number that can be, by place and number; the first of those that repeat one."""
    rows = np.flatnonzero((number >= 0) & (number < NUMBERS))
    _, first = np.unique((place[rows] << _SHIFT) | number[rows], return_index=True)
    return rows[first]


def _find(ordered: Ints, wanted: Ints) -> Ints:
    """Where each value is in an ordered array; -1 if it is not there."""
    if not len(ordered):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[at] == wanted, at, -1)


def _kinds(columns: list[Ints]) -> tuple[Ints, Ints]:
    """The different frames, as columns of their fields, and which of them each row has."""
    order = np.lexsort(columns)
    stacked = np.stack(columns)[:, order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (stacked[:, 1:] != stacked[:, :-1]).any(axis=0)
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(new) - 1
    return stacked[:, new], which


def _merged(
    up: Ints, lost: NDArray[np.bool_], which: Ints
) -> tuple[list[int], list[int], list[int], Ints]:
    """Parent and kind of frame of each node (from 1 on), levels, and the node of each row.

    Level by level: rows are one node if their parents are one, and their frames.
    """
    node = np.where(lost, 0, -1)
    parent: list[int] = []
    kind: list[int] = []
    first, starts = _children(up)
    rows, around = np.flatnonzero(up < 0), np.where(lost[up < 0], 0, -1)
    kinds = int(which.max(initial=0)) + 1
    levels = [1]
    for _ in range(DEEPEST):
        if not len(rows):
            break
        key, inverse = np.unique((around + 1) * kinds + which[rows], return_inverse=True)
        node[rows] = inverse + len(parent) + 1
        parent += (key // kinds - 1).tolist()
        kind += (key % kinds).tolist()
        levels.append(len(parent) + 1)
        rows, around = _below(rows, node, first, starts)
    return parent, kind, levels, _deepest(node, up)


def _children(up: Ints) -> tuple[Ints, Ints]:
    """Rows by the row around them, and where those of each row begin."""
    order = np.argsort(up, kind="stable")
    return order, np.searchsorted(up[order], np.arange(len(up) + 1))


def _below(rows: Ints, node: Ints, first: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """The rows right below some rows, and the node around each."""
    count = starts[rows + 1] - starts[rows]
    offsets = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return first[np.repeat(starts[rows], count) + offsets], np.repeat(node[rows], count)


def _deepest(node: Ints, up: Ints) -> Ints:
    """Rows below the deepest level that is kept are the node around them."""
    around = np.where(node >= 0, np.arange(len(up)), up)
    while (node[around] < 0).any():
        around = around[around]
    return node[around]
