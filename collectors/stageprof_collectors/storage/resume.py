"""Where reading of a damaged `*.stageprof` file goes on: at the next frame whose checksum is right.

A checksum covers the file's head, the number of the frame, its lengths and its payload; so what
passes for one is a frame of this file, and which one is known. Only such with a higher number than
all that were read are taken: what was swapped or copied is left out. What all searches of a file
take together is bounded, whatever somebody wrote into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from stageprof_collectors.storage import frame
from stageprof_collectors.storage.frame import BATCH, END

#: Bytes of a file that are searched: damage of a frame, its rest, and as much again.
SEARCHED: Final = 4 * frame.MAX_PAYLOAD
#: Beginnings of a stream that are looked at: one in 16 kB of a payload looks like one by chance.
LOOKS: Final = 50_000
#: Bytes that are summed: a tenth of a second; and what trying one number takes besides, in bytes.
SUMMED: Final = 128 << 20
_TRY: Final = 1000
#: How a payload begins: as a zlib stream does, at any level.
_STREAM: Final = re.compile(rb"x[\x01^\x9c\xda]")
_PIECE: Final = 1 << 20
_HEAD: Final = frame.FRAME_HEAD.size
#: Bytes of the smallest frame; and frames that may be missing where no bytes are.
_SMALLEST: Final = _HEAD + 8
_GONE: Final = 16


class Next(NamedTuple):
    """A good frame: its place in the file, in bytes, and its number."""

    offset: int
    number: int


class Search:
    """Looks for good frames in one file.

    Args:
        file: the file, open for reading; it is left somewhere.
        head: its first 16 bytes.
        size: its bytes.
    """

    def __init__(self, file: BinaryIO, head: bytes, size: int) -> None:
        self._file, self._head, self._size = file, head, size
        self._searched, self._looks, self._summed = SEARCHED, LOOKS, SUMMED

    def after(self, offset: int, number: int) -> Next | None:
        """The next good frame.

        Args:
            offset: where frame `number` should have been.
            number: the least that it may have.
        """
        for place, head in self._heads(offset):
            most = number + (place - offset) // _SMALLEST + _GONE
            found = self._number(place, head, number, most)
            if found is not None:
                return Next(place, found)
        return None

    def _heads(self, offset: int) -> Iterator[tuple[int, tuple[int, int, int, int]]]:
        """What may be the head of a frame, from there on."""
        for at in range(offset, self._size, _PIECE):
            self._file.seek(at)
            piece = self._file.read(_HEAD + _PIECE + 1)
            for match in _STREAM.finditer(piece, _HEAD):
                if self._looks <= 0 or self._summed <= 0:  # nor read what cannot be summed
                    return
                self._looks -= 1
                start = match.start() - _HEAD
                yield at + start, frame.FRAME_HEAD.unpack_from(piece, start)
            self._searched -= _PIECE
            if self._searched <= 0:
                return

    def _number(
        self, place: int, head: tuple[int, int, int, int], least: int, most: int
    ) -> int | None:
        """The number of the frame there, if it is one."""
        kind, length, raw_length, crc = head
        fits = length <= frame.MAX_PAYLOAD and place + _HEAD + length <= self._size
        if kind not in (BATCH, END) or not fits or raw_length > frame.MAX_RAW:
            return None
        self._file.seek(place + _HEAD)
        payload = self._file.read(length)
        for number in range(least, most):
            if self._summed <= 0:
                return None
            self._summed -= length + _TRY
            if crc == frame.checksum(self._head, number, kind, raw_length, payload):
                return number
        return None
