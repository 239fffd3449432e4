"""A table that grows batch by batch, as one array per column."""

from __future__ import annotations

import threading
from copy import copy
from typing import Final

import numpy as np

from stageprof_collectors.storage.abreast import abreast
from stageprof_collectors.storage.columns import Ints, Values, widen
from stageprof_collectors.storage.growing import Growing
from stageprof_collectors.storage.scratch import Scratch
from stageprof_collectors.storage.shipment import FLOATS, Part
from stageprof_collectors.storage.words import Words
from stageprof_runtime.event import FIELDS, KEYS, TABLES, TEXT
from stageprof_runtime.stage import STEPS

#: Rows, and batches, that may wait in narrow form: the larger the lot, the cheaper a row, but
#: the columns of each batch are some 2 kB of Python objects until then.
_PENDING_ROWS: Final = 1 << 18
_PENDING_PARTS: Final = 1 << 14

_FIELDS: Final = {TABLES[number]: fields for number, fields in FIELDS.items()}


class Table:
    """The rows of one table of all batches so far, in the order in which they arrived."""

    def __init__(self, name: str, words: Words) -> None:
        self.name = name
        self.rows = 0
        #: values that lay outside what they index and were set to 0: strings, step codes
        self.clamped = 0
        self._words = words
        self._parts: list[Part] = []
        self._notes: list[tuple[int, int, int, int]] = []
        self._pending = 0
        self._chunks: list[dict[str, Values]] = []
        #: what follows the chunks, of a table that is large
        self._growing: Growing | None = None
        #: two may ask for the columns at once, and the first one has them made
        self._lock = threading.RLock()

    def add(self, part: Part, place: int, span: tuple[int, int], first_key: int) -> None:
        """Append the rows of one batch.

        Args:
            part: the rows.
            place: index of the place that sent them.
            span: where the batch's strings are, as `Words.add` returned it.
            first_key: index of the first key of this table in this batch.
        """
        with self._lock:
            self._parts.append(part)
            self._notes.append((place, *span, first_key))
            self.rows += part.rows
            self._pending += part.rows
            if self._pending >= _PENDING_ROWS or len(self._parts) >= _PENDING_PARTS:
                self._widen()

    def arrays(self, scratch: Scratch) -> dict[str, Values]:
        """Every column, and `place`; read-only, and the same objects until rows are added."""
        with self._lock:
            self._settle()
            if not self._chunks:
                self._chunks = [self._empty()]
            if len(self._chunks) > 1:
                self._chunks = [self._joined(scratch)]
            whole = self._chunks[0]
            for field in whole:
                whole[field] = scratch.column(whole[field])
            return whole

    def since(self, row: int) -> dict[str, Values]:
        """The columns from a row on; what it takes does not grow with the rows before."""
        with self._lock:
            self._settle()
        new, first = [self._empty()], self.rows
        for chunk in reversed(self._chunks):
            if first <= row:
                break
            first -= len(chunk["place"])
            new.append(chunk)
        parts = new[:0:-1] or new
        columns = {f: np.concatenate([part[f] for part in parts]) for f in new[0]}
        return {f: _frozen(values[max(0, row - first) :]) for f, values in columns.items()}

    def copy(self, words: Words) -> Table:
        """The same rows in a table of its own; the arrays are shared, for nobody writes to them."""
        with self._lock:
            self._settle()
            other = copy(self)
            other._words, other._chunks = words, self._chunks.copy()
            other._parts, other._notes = [], []
        return other

    def __getstate__(self) -> dict[str, object]:
        """A recording may be pickled with a function that closes over it; its lock may not."""
        with self._lock:
            self._settle()
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()

    def _settle(self) -> None:
        """Let all rows be in chunks."""
        self._widen()
        if self._growing is not None:
            taken = self._growing.taken()
            self._chunks.append({field: _frozen(values) for field, values in taken.items()})
            self._growing = None

    def _joined(self, scratch: Scratch) -> dict[str, Values]:
        def join(field: str) -> Values:
            return scratch.column(_frozen(np.concatenate([c[field] for c in self._chunks])))

        return abreast(join, self._chunks[0], self.rows)

    def _empty(self) -> dict[str, Values]:
        names = (*_FIELDS[self.name], "place")
        return {f: _frozen(np.empty(0, float if f in FLOATS else np.int64)) for f in names}

    def _widen(self) -> None:
        if not self._parts:
            return
        rows = np.array([part.rows for part in self._parts], np.int64)
        place, start, count, first_key = np.array(self._notes, np.int64).T
        columns = widen(self.name, self._parts)
        for field in columns.keys() & TEXT:
            local = self._within(columns[field], np.repeat(count, rows))
            columns[field] = self._words.meanings(np.repeat(start, rows) + local)
        if "step" in columns:
            columns["step"] = self._within(columns["step"], len(STEPS))
        for field in KEYS.intersection(_FIELDS[self.name]):
            columns[field] = _counted_from(first_key, rows)
        columns["place"] = np.repeat(place, rows)
        self._append({f: _frozen(columns[f]) for f in (*_FIELDS[self.name], "place")})
        self._parts, self._notes, self._pending = [], [], 0

    def _append(self, columns: dict[str, Values]) -> None:
        if self._growing is not None:
            self._growing.add(columns)
        elif self._pending >= _PENDING_ROWS:
            self._growing = Growing(columns)
        else:
            self._chunks.append(columns)

    def _within(self, values: Ints, limit: Ints | int) -> Ints:
        """The values, but 0 (a text or step that always exists) for those outside 0 to limit."""
        outside = (values < 0) | (values >= limit)
        if not outside.any():
            return values
        self.clamped += int(outside.sum())
        return np.where(outside, 0, values)


def _counted_from(first: Ints, rows: Ints) -> Ints:
    """first[0], first[0] + 1, ... for rows[0] values, then the same from first[1], ..."""
    before: Ints = np.cumsum(rows) - rows
    result: Ints = np.arange(int(rows.sum())) + np.repeat(first - before, rows)
    return result


def _frozen(values: Values) -> Values:
    values.flags.writeable = False
    return values
