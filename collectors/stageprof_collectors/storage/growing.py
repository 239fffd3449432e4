"""Columns that get longer at their end, without a copy of what is there.

To put a hundred pieces together at the end takes as much memory once more, and handing that out is
most of what it costs. A large array that is made longer is moved by the system page by page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from stageprof_collectors.storage.columns import Values

#: Rows there is room for at first: from 4 MB a column on NumPy asks for large pages.
ROOM: Final = 1 << 19
#: What is added of the present room when it is full; new room is filled with zeros, so not much.
_MORE: Final = 0.25


class Growing:
    """Arrays of one length, by name; nobody else sees them until they are taken."""

    def __init__(self, columns: Mapping[str, Values]) -> None:
        self._room, self.rows = ROOM, 0
        self._columns = {name: np.empty(ROOM, v.dtype) for name, v in columns.items()}
        self.add(columns)

    def add(self, columns: Mapping[str, Values]) -> None:
        """Append rows; the columns are those that it was made with."""
        rows = self.rows + len(next(iter(columns.values())))
        if rows > self._room:
            self._stretch(max(rows, int(self._room * (1 + _MORE))))
        for name, values in columns.items():
            self._columns[name][self.rows : rows] = values
        self.rows = rows

    def taken(self) -> dict[str, Values]:
        """The arrays, just as long as they must be; nothing is to be added any more."""
        self._stretch(self.rows)
        taken, self._columns = self._columns, {}
        return taken

    def _stretch(self, room: int) -> None:
        for values in self._columns.values():
            values.resize(room, refcheck=False)  # no view of it exists
        self._room = room
