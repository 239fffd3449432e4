"""The layout of a `*.stageprof` file: the only place that knows its bits.

All integers are little-endian. The file begins with 16 bytes::

    offset  size  content
         0     8  magic: 89 "stprof" 0A  (the 0x89 and the line feed catch text conversions)
         8     1  major version: a reader refuses a newer one
         9     1  minor version: a reader reads any
        10     2  flags, 0 so far; a reader ignores bits that it does not know
        12     4  salt: CRC-32 of the JSON text of the META frame

Then frames follow without padding, each with a head of 13 bytes::

    offset  size  content
         0     1  type: 1 META, 2 BATCH, 3 END; bit 0x80 set: skip it if you don't know it
         1     4  length of the payload, at most 16 MiB
         5     4  raw length: that of the payload once decompressed, at most 64 MiB; of JSON 4 MiB
         9     4  CRC-32 of: the CRC-32 of the file's 16 bytes (u32), the number of this frame
                  counted from 0 (u32), the 9 bytes before this field, the payload
        13   len  payload: one zlib stream (written at level 1)

The number of a frame is not stored; it enters the CRC, so that a frame that was swapped,
duplicated, left out or taken from another recording does not pass. Decompressed, a payload is:

META   (always frame 0, exactly once) a JSON object: the header of the recording.
BATCH  one or more batches, each as length (u32) and a msgpack map as in `stageprof_runtime.batch`.
END    (last) a JSON object: totals; `frames` and `batches` count what lies before it.

A file without END is a recording that was cut short; all frames before the cut are good. Where a
frame is damaged, a reader may go on at the next one of this file, which its checksum tells, and
with it its number: how many are missing (`resume`).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

from isal import igzip_lib as isal
from isal import isal_zlib as zlib  # the same functions on the same format, twice as fast

#: What isal raises on a stream that is none; its types say that it is an instance.
_DAMAGED: Final = cast("type[Exception]", isal.IsalError)

MAGIC: Final = b"\x89stprof\n"
MAJOR: Final = 1
MINOR: Final = 3

META: Final = 1
BATCH: Final = 2
END: Final = 3
SKIPPABLE: Final = 0x80

#: Name of each frame type that this version knows.
TYPES: Final = {META: "META", BATCH: "BATCH", END: "END"}

MAX_PAYLOAD: Final = 16 << 20
MAX_RAW: Final = 64 << 20
#: Of JSON: the objects that it makes take twenty times as much.
MAX_JSON: Final = 4 << 20

FILE_HEAD: Final = struct.Struct("<8sBBHI")
FRAME_HEAD: Final = struct.Struct("<BIII")
_CHECKED: Final = struct.Struct("<BII")
_SEED: Final = struct.Struct("<II")
_LENGTH: Final = struct.Struct("<I")


class Frame(NamedTuple):
    """One whole frame as read from a file, its checksum verified."""

    #: `META`, `BATCH`, `END`, or a skippable type of a newer minor version
    type: int
    #: its place in the file, in bytes, and how many bytes it takes there, head included
    offset: int
    size: int
    #: the payload, decompressed
    raw: bytes


def file_head(meta: bytes) -> bytes:
    """The first 16 bytes of a recording whose META frame holds `meta`."""
    return FILE_HEAD.pack(MAGIC, MAJOR, MINOR, 0, zlib.crc32(meta))


def checksum(head: bytes, number: int, kind: int, raw_length: int, payload: bytes) -> int:
    """The CRC-32 of frame `number` in the file that begins with `head`."""
    crc = zlib.crc32(_SEED.pack(zlib.crc32(head), number & 0xFFFFFFFF))
    crc = zlib.crc32(_CHECKED.pack(kind, len(payload), raw_length), crc)
    return zlib.crc32(payload, crc)


def encode(head: bytes, number: int, kind: int, raw: bytes) -> bytes:
    """The bytes of frame `number`.

    Raises:
        ValueError: `raw` or its compressed form exceeds the limits of a frame.
    """
    if len(raw) > MAX_RAW:
        raise ValueError(f"{len(raw):,} bytes in a frame; expected at most {MAX_RAW:,}")
    payload = zlib.compress(raw, 1)
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"{len(payload):,} compressed bytes; expected at most {MAX_PAYLOAD:,}")
    crc = checksum(head, number, kind, len(raw), payload)
    return FRAME_HEAD.pack(kind, len(payload), len(raw), crc) + payload


def decompress(payload: bytes, raw_length: int) -> bytes:
    """The payload in full, never more than `raw_length` + 1 bytes of memory for it.

    Raises:
        ValueError: it is no single zlib stream of exactly that length.
    """
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(payload, raw_length + 1)
    except _DAMAGED as error:
        raise ValueError(f"its payload does not decompress ({error})") from error
    if len(raw) != raw_length or not stream.eof or stream.unused_data:
        raise ValueError(f"its payload does not decompress to the {raw_length:,} bytes it claims")
    return raw


def encode_json(value: dict[str, Any]) -> bytes:
    """A header or totals as the JSON text of a META or END frame."""
    return json.dumps(value, allow_nan=False, default=str, sort_keys=True).encode()


def decode_json(raw: bytes) -> dict[str, Any]:
    """The object in a META or END frame.

    Raises:
        ValueError: it is no JSON object.
    """
    try:
        value = json.loads(raw)
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"a JSON {type(value).__name__} where an object was expected")
    return value


def join(batches: Sequence[bytes]) -> bytes:
    """Batches -> the raw content of one BATCH frame."""
    return b"".join(part for b in batches for part in (_LENGTH.pack(len(b)), b))


def split(raw: bytes) -> Iterator[memoryview]:
    """The raw content of a BATCH frame -> its batches, without a copy.

    Raises:
        ValueError: a batch claims more bytes than the frame has; those before it were yielded.
    """
    view, at = memoryview(raw), 0
    while at < len(raw):
        start = at + _LENGTH.size
        if start > len(raw):
            raise ValueError("a batch is cut off inside its frame")
        at = start + _LENGTH.unpack_from(raw, start - _LENGTH.size)[0]
        if at > len(raw):
            raise ValueError("a batch is longer than its frame")
        yield view[start:at]
