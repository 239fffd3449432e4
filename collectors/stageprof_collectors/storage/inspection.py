"""A recording as text, frame by frame: for people who wonder what is in it, and for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from stageprof_collectors.storage import frame
from stageprof_collectors.storage.file import Frames, read_frames
from stageprof_collectors.storage.frame import BATCH, TYPES, Frame
from stageprof_collectors.storage.key import shorten
from stageprof_collectors.storage.shipment import Shipment, decode
from stageprof_collectors.text import visible
from stageprof_runtime.errors import DamagedRecording


def dump(path: str | os.PathLike[str], *, max_memory: int | None = None) -> Iterator[str]:
    r"""The lines of the text: one per frame, indented ones per batch, a last one on integrity.

    Control characters of a recording never reach the terminal: they appear as `\xNN`.

    Raises:
        NotARecording, NewerRecording, DamagedRecording: as `read_frames`, with the first line.
    """
    with read_frames(path, max_memory=max_memory) as frames:
        yield f"{visible(str(frames.path))}: version {frames.version[0]}.{frames.version[1]}"
        for found in frames:
            yield _frame_line(frames.number - 1, found)
            yield from map(visible, _content(found))
        yield visible(_integrity(frames))


def _frame_line(number: int, found: Frame) -> str:
    kind = TYPES.get(found.type, f"type 0x{found.type:02x}, skipped")
    size = found.size - frame.FRAME_HEAD.size
    return f"{number:6} @{found.offset:<10} {kind:5} {size:9,} -> {len(found.raw):,} bytes, crc ok"


def _content(found: Frame) -> Iterator[str]:
    if found.type == BATCH:
        yield from _batches(found.raw)
    elif found.type in TYPES:
        yield "       " + shorten(found.raw.decode("utf-8", "backslashreplace"), found.raw)


def _batches(raw: bytes) -> Iterator[str]:
    try:
        for batch in frame.split(raw):
            yield "       " + _batch_line(batch)
    except ValueError as error:
        yield f"       damaged: {error}"


def _batch_line(batch: memoryview) -> str:
    try:
        shipment = decode(batch)
    except DamagedRecording as error:
        return f"damaged: {error}"
    role, host, pid, name, life = shipment.place
    rows = ", ".join(f"{table} {part.rows}" for table, part in shipment.parts.items())
    where = shorten(f"{role} {name} ({host}, pid {pid}, life {life})", "")
    return f"{where} seq {shipment.seq} t {shipment.t}: {rows or 'no rows'}{_left_out(shipment)}"


def _left_out(shipment: Shipment) -> str:
    try:
        drops = msgspec.msgpack.decode(shipment.drops, type=dict[str, int])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "; drops unreadable"
    parts = (("drops", drops), ("skipped", shipment.skipped))
    return "".join(f"; {what} {shorten(str(counts), '')}" for what, counts in parts if counts)


def _integrity(frames: Frames) -> str:
    read = f"{frames.count:,} frames, {frames.offset - frames.passed:,} of {frames.size:,} bytes"
    if frames.complete:
        return f"complete: {read}"
    return f"incomplete: {read}; {frames.reason}"
