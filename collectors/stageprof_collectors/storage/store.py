"""Everything of a recording, as columns: the same object while it grows and from a file."""

from __future__ import annotations

import os
from collections import Counter
from copy import copy
from typing import Any, Final, Self

from numpy.typing import ArrayLike

from stageprof_collectors.garbage import no_collection
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.columns import Ints, Values
from stageprof_collectors.storage.file import MAX_MEMORY, Frames, read_frames
from stageprof_collectors.storage.frame import BATCH, END, META, Frame
from stageprof_collectors.storage.frames import ALLOW_MORE
from stageprof_collectors.storage.keylist import KeyList
from stageprof_collectors.storage.layered import Layered
from stageprof_collectors.storage.origin import Origin
from stageprof_collectors.storage.scratch import LEAST, Scratch
from stageprof_collectors.storage.shipment import Shipment, decode
from stageprof_collectors.storage.table import Table
from stageprof_collectors.storage.words import Words
from stageprof_runtime.errors import DamagedRecording
from stageprof_runtime.event import FIELDS, KEYS, TABLES, Place

#: Columns of a table, and what a place takes beside its events, in bytes (for `max_memory`).
_WIDTH: Final = {TABLES[number]: 8 * (len(fields) + 1) for number, fields in FIELDS.items()}
_PLACE_BYTES: Final = 2048
_WORD_BYTES: Final = 16
#: And a batch beside what is in it, also one that is none: a file of some kilobytes may claim
#: millions, which take minutes to look at.
BATCH_BYTES: Final = 512

_BEYOND: Final = "batch beyond max_memory"
#: The reason by which frames are counted that a reader passed over.
DAMAGED: Final = "damaged frame"

_KEY_FIELDS: Final = {
    TABLES[number]: tuple(f for f in fields if f in KEYS) for number, fields in FIELDS.items()
}


class Store:
    """The batches of a recording joined into tables.

    Args:
        header: what the META frame of the file says.
        max_memory: batches that would take the store beyond this are left out, bytes.
    """

    def __init__(
        self, header: dict[str, Any] | None = None, *, max_memory: int = MAX_MEMORY
    ) -> None:
        self.header: dict[str, Any] = header or {}
        #: what the END frame says; empty without one
        self.totals: dict[str, Any] = {}
        #: whether the recording was closed in good order, and what is wrong if not
        self.complete = False
        self.incomplete_reason = "recording has not ended"
        #: places in the order of their first batch, and what is known of each
        self.places: list[Place] = []
        self.origins: list[Origin] = []
        #: batches, tables and columns left out, by reason
        self.skipped: Counter[str] = Counter()
        #: batches taken in
        self.batches = 0
        #: about how much memory the store takes once all tables were asked for, bytes
        self.bytes = 0
        #: where large columns go; in memory they stay if nobody called `spill`
        self.scratch = Scratch()
        self._max_memory = max_memory
        self._words = Words()
        self._tables = {name: Table(name, self._words) for name in TABLES.values()}
        self._place_index: dict[Place, int] = {}
        self._keys = KeyList()

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, max_memory: int | None = None) -> Self:
        """The recording at `path`; a damaged or unfinished one as far as it can be read.

        Args:
            path: a `*.stageprof` file.
            max_memory: how much it may take, bytes; the rest is left out and `complete` False.
                None: what a sound recording of its size may take.

        Raises:
            NotARecording, NewerRecording: it cannot be read at all.
            DamagedRecording: not even its header can be read.
        """
        with read_frames(path, max_memory=max_memory) as frames, no_collection():
            store = cls(max_memory=frames.max_memory)
            for found in frames:
                store._take(found)
                if store.full:
                    break
        store._finish(frames)
        return store

    def copy(self) -> Self:
        """What is here now, in a store that grows no more; takes little, for arrays are shared."""
        other = copy(self)
        other.places, other._place_index = self.places.copy(), self._place_index.copy()
        other.origins = [origin.copy() for origin in self.origins]
        other.skipped = self.skipped.copy()
        other._words, other._keys = self._words.copy(), self._keys.copy()
        other._tables = {name: table.copy(other._words) for name, table in self._tables.items()}
        return other

    @property
    def strings(self) -> list[str]:
        """What text columns index; grows, and keeps its order, as batches are added."""
        return self._words.texts

    @property
    def full(self) -> bool:
        """Whether something was left out because it would have taken too much memory."""
        return _BEYOND in self.skipped

    @property
    def clamped(self) -> int:
        """Values that pointed nowhere (texts, steps) and became 0, in the tables read so far."""
        return sum(table.clamped for table in self._tables.values())

    def add(self, batch: bytes | memoryview) -> bool:
        """Take in a batch, as shipped or narrowed.

        Returns:
            False if it was left out: damaged or too much (see `skipped`), or a duplicate (see
            `Origin.duplicates`).
        """
        try:
            shipment = decode(batch) if self._fits(BATCH_BYTES) else None
            if shipment is None or not self._fits(self._need(shipment, len(batch))):
                self.skipped[_BEYOND] += 1
                return False
            span = self._words.add(shipment.strings)
        except (DamagedRecording, ValueError):
            self.skipped["damaged batch"] += 1
            return False
        place = self._place(shipment.place)
        if not self.origins[place].take(shipment):
            return False
        self._add_parts(shipment, place, span)
        return True

    def table(self, name: str) -> dict[str, Values]:
        """All rows of a table: a read-only array per field of `event.FIELDS`, and `place`.

        Times are ns of the place's own clock. Text fields index `strings`, key fields are for
        `keys`, `place` indexes `places`. Kept until batches are added.

        Raises:
            KeyError: there is no such table.
        """
        return self._tables[name].arrays(self.scratch)

    def spill(self, least: int = LEAST) -> None:
        """Have columns and keys of so many bytes or more on disk from now on; none is added then.

        What others make of them may go there too: `scratch.column`.
        """
        self.scratch = Scratch(least)
        self._keys.spill(self.scratch)

    def since(self, name: str, row: int) -> dict[str, Values]:
        """The rows of a table from one on, as `table` has them; for those who follow it.

        Raises:
            KeyError: there is no such table.
        """
        return self._tables[name].since(row)

    def rows(self, name: str) -> int:
        """How many rows a table has; costs nothing."""
        return self._tables[name].rows

    def keys(self, indices: ArrayLike) -> list[str]:
        """The texts of keys (see `text_of_key`) by what a key column holds, in that order.

        Raises:
            IndexError: there is no key of that index.
        """
        return self._keys.texts(indices)

    def layered(self, indices: Ints) -> Layered:
        """The layers of keys by what a key column holds; much less than their texts take."""
        return Layered(self._keys.parts(indices), len(indices))

    def _need(self, s: Shipment, size: int) -> int:
        """What a batch of so many bytes takes, once it is known what is in it."""
        need = size + _WORD_BYTES * s.string_count
        for name, part in s.parts.items():
            need += part.rows * _WIDTH[name]
        return need + (0 if s.place in self._place_index else _PLACE_BYTES)

    def _fits(self, need: int) -> bool:
        if self.bytes + self._words.bytes + need > self._max_memory:
            return False
        self.bytes += need
        return True

    def _place(self, place: Place) -> int:
        index = self._place_index.setdefault(place, len(self.places))
        if index == len(self.places):
            self.places.append(place)
            self.origins.append(Origin(place))
        return index

    def _add_parts(self, s: Shipment, place: int, span: tuple[int, int]) -> None:
        self.batches += 1
        if s.skipped:
            self.skipped.update(s.skipped)
        for name, part in s.parts.items():
            first_key = 0
            for field in _KEY_FIELDS[name]:
                first_key = self._keys.add(part.columns[field][2], part.rows)
            self._tables[name].add(part, place, span, first_key)

    def _take(self, found: Frame) -> None:
        if found.type == META:
            self.header = _header(found.raw)
        elif found.type == END:
            self.totals = frame.decode_json(found.raw)
            self._note_refused(self.totals.get("refused"))
        elif found.type == BATCH:
            self._take_batches(found.raw)

    def _note_refused(self, count: object) -> None:
        if isinstance(count, int) and 0 < count < 1 << 32:
            self.skipped["batch too large for a frame"] += count

    def _take_batches(self, raw: bytes) -> None:
        try:
            for batch in frame.split(raw):
                self.add(batch)
                if self.full:
                    break
        except ValueError:
            self.skipped[DAMAGED] += 1

    def _finish(self, frames: Frames) -> None:
        self.complete, self.incomplete_reason = frames.complete, frames.reason
        if frames.missing:
            self.skipped[DAMAGED] += frames.missing
        if self.skipped.pop(_BEYOND, 0):
            self.complete = False
            self.incomplete_reason = (
                f"opening stopped after {self.batches:,} batches, for the rest takes more than "
                f"{self._max_memory:,} bytes; {ALLOW_MORE}"
            )


def _header(raw: bytes) -> dict[str, Any]:
    try:
        return frame.decode_json(raw)
    except ValueError as error:
        raise DamagedRecording(
            f"the header of the recording cannot be read ({error})",
            expected="a JSON object",
            do="record again",
        ) from error
