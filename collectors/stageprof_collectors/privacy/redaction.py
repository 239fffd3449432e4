"""A copy of a recording to hand to somebody: its numbers, and none of the user's names.

Every text and key of every batch is replaced as `pseudonym` says, one table for the whole file, so
that accounts, counts and findings stay. What stays readable: the words of Python, Dask and the
public libraries, functions and files of those libraries in stacks, and all numbers.
"""

from __future__ import annotations

import functools
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, Final

import msgspec
import numpy as np

from stageprof_collectors.privacy.labels import Labels
from stageprof_collectors.privacy.pseudonym import Pseudonyms
from stageprof_collectors.privacy.vocabulary import public, vocabulary
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.columns import Ints, narrowed, widen
from stageprof_collectors.storage.file import Writer
from stageprof_collectors.storage.flight import Window
from stageprof_collectors.storage.frame import BATCH, END, META, Frame
from stageprof_collectors.storage.frames import read_frames
from stageprof_collectors.storage.key import pack_keys, printable, unpack_keys
from stageprof_collectors.storage.shipment import Column, Part, Shipment, decode
from stageprof_collectors.storage.store import BATCH_BYTES
from stageprof_collectors.storage.words import decode_texts
from stageprof_runtime.batch import safe_key
from stageprof_runtime.errors import DamagedRecording, RecordingNotWritable
from stageprof_runtime.event import KEYS, TEXT
from stageprof_runtime.loaded import STORED

#: What a header says of versions and the machine's kind.
_SAID: Final = frozenset(
    {
        "stageprof", "dask", "distributed", "python", "platform", "machine", "cpus", "started",
        "began", "until",
    }
)  # fmt: skip

#: What a header says of a flight recorder's window.
_WINDOW: Final = frozenset(each.name for each in fields(Window))
#: Text fields that hold nothing but the user's own names.
_OWN: Final = frozenset({("column", "label")})
#: Shapes and sizes of chunks: of arrays in files they are no names.
_SHAPES: Final = re.compile(r"[\dx ]*")

_encode = msgspec.msgpack.encode


def redact(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Write a redacted copy of the recording at `path`.

    A recording that is damaged or unfinished, or has more batches than a sound one of its size, is
    copied as far as it can be read, and its copy is unfinished as well.

    Raises:
        NotARecording, NewerRecording, DamagedRecording: it cannot be read.
        RecordingNotWritable: the copy cannot be written there.
    """
    try:
        _redacted(path, target)
    except RecursionError:
        raise DamagedRecording(
            f"{path} holds values within values without end", expected="keys of a few levels"
        ) from None


def _redacted(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    totals: dict[str, Any] = {}
    with read_frames(path) as frames:
        redaction = Redaction(frames.max_memory // BATCH_BYTES)
        writer = Writer(target, redaction.header(next(frames)))
        try:
            for found in frames:
                if found.type == END:
                    totals = redaction.totals(found)
                writer.write(*redaction.batches(found))
                if redaction.full:
                    break
        finally:
            if frames.complete:
                writer.close(totals)
            writer.abandon()
    if writer.failed:
        raise RecordingNotWritable(
            f"{target} could not be written ({writer.failed})", do="free some space"
        )


class Redaction:
    """Batches without the user's names, of at most so many; one for a whole file."""

    def __init__(self, most: int = sys.maxsize) -> None:
        self._left = most
        self._names = Pseudonyms(vocabulary())
        self._text = self._names.text
        self._label = Labels(self._names).of

    def header(self, found: Frame) -> dict[str, Any]:
        """What the copy's header says."""
        header: dict[str, Any] = self._values(_header(found))
        return header | {"redacted": True}

    def totals(self, found: Frame) -> dict[str, Any]:
        """What the copy's END frame says beside its own counts."""
        totals: dict[str, Any] = self._values(frame.decode_json(found.raw))
        return totals

    def _values(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {self._header_key(str(k)): self._values(v, str(k)) for k, v in value.items()}
        if isinstance(value, list):
            return [self._values(each) for each in value]
        if isinstance(value, float) and not math.isfinite(value):  # no JSON has it
            return None
        return self._text(value) if isinstance(value, str) and name not in _SAID else value

    def _header_key(self, name: str) -> str:
        return name if name in _WINDOW else self._text(name)

    @property
    def full(self) -> bool:
        """Whether there were more batches."""
        return self._left < 0

    def batches(self, found: Frame) -> Iterator[bytes]:
        """The batches of a frame; those that are damaged are left out."""
        for batch in _split(found.raw) if found.type == BATCH else ():
            self._left -= 1
            if self.full:
                return
            yield from self._batch(batch)

    def _batch(self, batch: memoryview) -> Iterator[bytes]:
        try:
            shipment = decode(batch)
            texts = decode_texts(shipment.strings) or [""]
        except (DamagedRecording, ValueError):
            return
        strings: dict[str, int] = {"": 0}
        parts = {
            name: Part(part.rows, self._columns(name, part, texts, strings))
            for name, part in shipment.parts.items()
        }
        packed = _encode(list(strings))
        whole = self._about(shipment)
        yield narrowed(whole._replace(parts=parts, strings=packed, string_count=len(strings)))

    def _about(self, shipment: Shipment) -> Shipment:
        """The same batch of a place by another name, counted under other names."""
        place = shipment.place
        place = place._replace(
            role=self._text(place.role),
            host=self._names.host(place.host),
            name=self._text(place.name),
        )
        drops, cost = self._named(shipment.drops), self._named(shipment.cost)
        return shipment._replace(place=place, drops=drops, cost=cost)

    def _named(self, packed: bytes) -> bytes:
        try:
            counts = msgspec.msgpack.decode(packed, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return _encode({})
        return _encode({self._text(name): _numbers(count) for name, count in counts.items()})

    # -- tables ---------------------------------------------------------------------------------

    def _columns(
        self, table: str, part: Part, texts: list[str], strings: dict[str, int]
    ) -> dict[str, Column]:
        wide = widen(table, [part])
        columns: dict[str, Column] = {}
        for field, column in part.columns.items():
            if field in KEYS:
                columns[field] = "K", 0, self._keys(column[2], part.rows)
            elif field in TEXT:
                said = self._said(table, field, wide, texts)
                columns[field] = _packed([strings.setdefault(t, len(strings)) for t in said])
            elif column[0] == "d":
                columns[field] = column
            else:
                columns[field] = _packed(wide[field])
        return columns

    def _said(
        self, table: str, field: str, wide: dict[str, Ints], texts: list[str]
    ) -> Iterator[str]:
        """The texts of a column, replaced."""
        mine = _read(wide[field], texts)
        if (table, field) in _BESIDE:
            beside, replace = _BESIDE[table, field]
            return map(functools.partial(replace, self), mine, _read(wide[beside], texts))
        return map(self._own if (table, field) in _OWN else self._path, mine)

    def _path(self, text: str) -> str:
        """A text, of which the part within a public package stays if it is a path."""
        at = public(text)
        return self._text(text[:at]) + text[at:] if at >= 0 else self._text(text)

    def _function(self, name: str, file: str) -> str:
        return name if public(file) >= 0 else self._text(name)

    def _unused(self, label: str, how: str) -> str:
        """Of an array in a file its shapes and sizes, of a frame columns, which are the user's."""
        return label if how == STORED and _SHAPES.fullmatch(label) else self._own(label)

    def _own(self, name: str) -> str:
        return self._text(name, strict=True)

    def _keys(self, packed: bytes, rows: int) -> bytes:
        try:
            keys = unpack_keys(packed)
        except ValueError:
            keys = [""] * rows
        return pack_keys([_encode(self._key(key)) for key in keys])

    def _key(self, key: object) -> object:
        """A key with other names; short whole numbers say which block of a collection it is."""
        if isinstance(key, str):
            return self._text(printable(key))
        if isinstance(key, list | tuple):
            return [self._key(each) for each in key]
        if isinstance(key, bytes):
            return self._text(key.decode("utf-8", "backslashreplace")).encode()
        if key is None:
            return None
        if isinstance(key, int | float):
            return self._names.number(key)
        return self._text(printable(str(safe_key(key))))


#: Fields that are replaced by what another field of their row says.
_BESIDE: Final[dict[tuple[str, str], tuple[str, Callable[[Redaction, str, str], str]]]] = {
    ("node", "name"): ("file", Redaction._function),
    ("called", "name"): ("file", Redaction._function),
    ("called", "by_name"): ("by_file", Redaction._function),
    ("unused", "label"): ("how", Redaction._unused),
    ("mark", "label"): ("name", lambda redaction, label, mark: redaction._label(label, mark)),
}


def _split(raw: bytes) -> Iterator[memoryview]:
    """The batches of a frame, up to one that is damaged."""
    try:
        yield from frame.split(raw)
    except ValueError:
        return


def _header(found: Frame) -> dict[str, Any]:
    try:
        if found.type == META:
            return frame.decode_json(found.raw)
    except ValueError as error:
        raise DamagedRecording(
            f"the header of the recording cannot be read ({error})", expected="a JSON object"
        ) from error
    raise DamagedRecording("the recording has no header", expected="a META frame first")


def _numbers(value: Any) -> Any:
    """A count, or a list of counts."""
    counts = value if isinstance(value, list) else [value]
    kept = [n if isinstance(n, int | float) else 0 for n in counts]
    return kept if isinstance(value, list) else kept[0]


def _read(indices: Ints, texts: list[str]) -> list[str]:
    """Texts by their indices; "" for what is none."""
    return [texts[i] if 0 <= i < len(texts) else "" for i in indices.tolist()]


def _packed(values: Any) -> Column:
    return "q", 0, np.asarray(values, "<i8").tobytes()
