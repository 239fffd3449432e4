"""The layout of a flight recorder's segment files: the only place that knows its bits.

A segment is a sequence of records, little-endian, each with a head of 17 bytes::

    offset  size  content
         0     1  kind: 1 ABOUT, 2 BASIS, 3 BATCHES
         1     4  length of the payload, at most 16 MiB
         5     8  when it was written: ms since 1970 by the scheduler's machine
        13     4  CRC-32 of the 13 bytes before and the payload
        17   len  payload: one zlib stream (written at level 1)

Decompressed, a payload is:

ABOUT    (first) a JSON object: versions, limits, the segment's number, what was dropped before.
BASIS    batches that say what places told once, before the segment; see `basis`. They are
         for whoever begins to read here: in a segment that follows another they say nothing new.
BATCHES  what places shipped, in the order in which it came.

Batches lie in a payload one after the other, each with its length (u32) before it. A segment that
was cut off is good up to its last whole record.
"""

from __future__ import annotations

import json
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final, NamedTuple

ABOUT: Final = 1
BASIS: Final = 2
BATCHES: Final = 3

MAX_PAYLOAD: Final = 16 << 20
#: More than a payload of ours ever is once decompressed.
MAX_RAW: Final = 64 << 20

_HEAD: Final = struct.Struct("<BIQI")
_CHECKED: Final = struct.Struct("<BIQ")
_LENGTH: Final = struct.Struct("<I")


class Record(NamedTuple):
    """One whole record, its checksum verified."""

    kind: int
    #: ms since 1970
    written: int
    #: the payload, decompressed
    raw: bytes


def encode(kind: int, raw: bytes) -> bytes:
    """The bytes of one record, written now."""
    payload = zlib.compress(raw, 1)
    checked = kind, len(payload), time.time_ns() // 1_000_000
    crc = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(*checked)))
    return _HEAD.pack(*checked, crc) + payload


def encode_json(kind: int, value: dict[str, Any]) -> bytes:
    """The same of a JSON object."""
    return encode(kind, json.dumps(value, default=str).encode())


def decode_json(raw: bytes) -> dict[str, Any]:
    """The object of an ABOUT record; empty if it is none."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def join(batches: Iterable[bytes]) -> bytes:
    """Batches -> the raw content of one record."""
    return b"".join(part for batch in batches for part in (_LENGTH.pack(len(batch)), batch))


def split(raw: bytes) -> Iterator[bytes]:
    """The raw content of a record -> its batches; one that is cut off ends them."""
    at = 0
    while at + _LENGTH.size <= len(raw):
        start = at + _LENGTH.size
        at = start + _LENGTH.unpack_from(raw, start - _LENGTH.size)[0]
        if at > len(raw):
            return
        yield raw[start:at]


def records(file: BinaryIO) -> Iterator[Record]:
    """The records of a segment up to the first that is not whole; never raises for its content."""
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        kind, length, written, crc = _HEAD.unpack(head)
        payload = file.read(length) if length <= MAX_PAYLOAD else b""
        checked = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(kind, length, written)))
        raw = _decompressed(payload) if len(payload) == length and checked == crc else None
        if raw is None:
            return
        yield Record(kind, written, raw)


def _decompressed(payload: bytes) -> bytes | None:
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(payload, MAX_RAW)
    except zlib.error:
        return None
    return raw if stream.eof else None
