"""Reading a `*.stageprof` file frame by frame; `frame` documents its layout.

Reading never fails on a file that was cut short or damaged after its first frame: it yields what
is good, goes on behind the damage where it can (`resume`), and says in `Frames.complete` and
`Frames.reason` what happened. Whatever it yields is as it was written, and in that order.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Self

from stageprof_collectors.storage import frame
from stageprof_collectors.storage.frame import END, META, Frame
from stageprof_collectors.storage.resume import Search
from stageprof_runtime.errors import DamagedRecording, NewerRecording, NotARecording

#: How much a recording in memory may take, bytes.
MAX_MEMORY: Final = 2 << 30
#: How much a reader takes from a file unless told otherwise: ten million tasks are 3 GB. And how
#: much of a small one: a sound one grows about tenfold, in no case as many times as this.
MAX_READ: Final = 4 << 30
LEAST_MEMORY: Final = 128 << 20
GROWTH: Final = 40
#: Frames that hold JSON.
_JSON: Final = frozenset({META, END})
#: Places where something is wrong that are told; of more their number.
_TOLD: Final = 3
#: What to do about a recording that takes more.
ALLOW_MORE: Final = "if you trust it, allow more with --max-memory (or max_memory in Python)"


class _DamageError(ValueError):
    """A frame is not as it was written; those behind it may be."""


class Frames(Iterator[Frame]):
    """The frames of a recording, in order; when it has ended its attributes tell how.

    Args:
        path: the file.
        max_memory: stop (as incomplete) before the decompressed content exceeds this, bytes; None
            allows what a sound recording of its size may take.

    Raises:
        NotARecording: nothing at `path` that could be a recording.
        NewerRecording: its major version is newer than `frame.MAJOR`.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_memory: int | None = None) -> None:
        self.path = Path(path)
        #: where the next frame is, in bytes, and its number
        self.offset = frame.FILE_HEAD.size
        self.number = 0
        #: frames read so far; frames and bytes that were passed over
        self.count = self.missing = self.passed = 0
        #: decompressed bytes of the frames read so far
        self.raw_bytes = 0
        #: whether the END frame was reached and is the last, and no frame is missing
        self.complete = False
        #: once the frames have ended: why the recording is incomplete, or ""
        self.reason = ""
        self._wrong: list[str] = []
        self._ended = False
        self._file: BinaryIO | None = _open(self.path)
        try:
            self._head = _check_head(self._file.read(frame.FILE_HEAD.size), self.path)
            self.size = os.fstat(self._file.fileno()).st_size
            #: how much may be taken from it, bytes
            self.max_memory = _allowed(self.size) if max_memory is None else max_memory
            self._search = Search(self._file, self._head, self.size)
        except BaseException:
            self.close()
            raise

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version of the file."""
        return self._head[8], self._head[9]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; no frame comes after that."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def __next__(self) -> Frame:
        if self._file is None:
            raise StopIteration
        try:
            return self._read_on(self._file)
        except (ValueError, OSError, MemoryError) as error:
            self._note(self._explain(str(error) or type(error).__name__))
        except EOFError:
            self._note("it ends without an END frame: recording was cut short")
        self.close()
        if not self.count:
            raise self._nothing()
        raise StopIteration

    def _read_on(self, file: BinaryIO) -> Frame:
        """The next frame; where it is damaged, the next good one behind it."""
        try:
            return self._read(file)
        except _DamageError as error:
            found = self._search.after(self.offset, self.number) if self.count else None
            if found is None:
                raise
            frames, passed = found.number - self.number, found.offset - self.offset
            self._note(f"{self._explain(str(error))}; {_left_out(frames, passed)}")
        self.missing += frames
        self.passed += passed
        self.offset, self.number = found.offset, found.number
        file.seek(self.offset)
        return self._read(file)

    def _read(self, file: BinaryIO) -> Frame:
        head = file.read(frame.FRAME_HEAD.size)
        if self._ended:
            return self._after_end(head)
        if not head:
            raise EOFError
        if len(head) < frame.FRAME_HEAD.size:
            raise _DamageError("the frame is cut off in its head")
        kind, length, raw_length, crc = frame.FRAME_HEAD.unpack(head)
        self._check_limits(length, raw_length, frame.MAX_JSON if kind in _JSON else frame.MAX_RAW)
        payload = file.read(length)
        if len(payload) < length:
            raise _DamageError(f"the frame is cut off: {len(payload):,} of {length:,} bytes")
        if crc != frame.checksum(self._head, self.number, kind, raw_length, payload):
            raise _DamageError("its checksum is wrong: damaged, moved or copied here")
        found = Frame(kind, self.offset, len(head) + length, frame.decompress(payload, raw_length))
        self._check_order(found)
        self._advance(found)
        return found

    def _after_end(self, head: bytes) -> Frame:
        if head:
            self.complete = False
            raise ValueError("there are bytes after the END frame")
        self.close()
        raise StopIteration

    def _check_limits(self, length: int, raw_length: int, most: int) -> None:
        if length > frame.MAX_PAYLOAD or raw_length > most:
            raise _DamageError(
                f"it claims {length:,} bytes for {raw_length:,} decompressed; expected at most "
                f"{frame.MAX_PAYLOAD:,} for {most:,}"
            )
        if self.raw_bytes + raw_length > self.max_memory:
            raise ValueError(f"more than {self.max_memory:,} bytes decompressed; {ALLOW_MORE}")

    def _check_order(self, found: Frame) -> None:
        if (found.type == META) != (self.count == 0):
            raise ValueError("META is the first frame and comes once")
        if found.type not in frame.TYPES and not found.type & frame.SKIPPABLE:
            raise ValueError(f"frame type {found.type} is unknown to this version of stageprof")
        if found.type == END and frame.decode_json(found.raw).get("frames") != self.number:
            raise ValueError("the END frame counts other frames than there are")

    def _advance(self, found: Frame) -> None:
        self._ended = found.type == END
        self.complete = self._ended and not self.reason
        self.count += 1
        self.number += 1
        self.offset += found.size
        self.raw_bytes += len(found.raw)

    def _note(self, what: str) -> None:
        """What is wrong: the first that there are, and how many more."""
        self._wrong.append(what)
        more = len(self._wrong) - _TOLD
        self.reason = "; ".join(self._wrong[:_TOLD]) + (f"; {more:,} more" if more > 0 else "")

    def _explain(self, what: str) -> str:
        return f"frame {self.number} at byte {self.offset:,} cannot be read: {what}"

    def _nothing(self) -> DamagedRecording:
        return DamagedRecording(
            f"nothing in {self.path} can be read ({self.reason})",
            expected="a whole META frame after the file header",
            do="record again",
        )


def _left_out(frames: int, passed: int) -> str:
    many = f"{frames:,} frame{'' if frames == 1 else 's'}"
    return f"{many} ({passed:,} bytes) left out, what follows is read"


def read_frames(path: str | os.PathLike[str], *, max_memory: int | None = None) -> Frames:
    """The frames of the recording at `path`; see `Frames` for how it ends and what it raises."""
    return Frames(path, max_memory=max_memory)


def _allowed(size: int) -> int:
    """How much a file of so many bytes may take in memory: a bomb is small, and claims much."""
    return min(max(LEAST_MEMORY, GROWTH * size), MAX_READ)


def _open(path: Path) -> BinaryIO:
    try:
        # O_NONBLOCK: opening a FIFO that nobody writes to must not wait for ever
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise _no_recording(f"{path} is not a regular file")
        return os.fdopen(fd, "rb")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise _no_recording(f"cannot read {path} ({why})") from error


def _check_head(head: bytes, path: Path) -> bytes:
    if not head:
        raise _no_recording(f"{path} is empty")
    if head[: len(frame.MAGIC)] != frame.MAGIC:
        raise _no_recording(f"{path} begins with {bytes(head[:8])!r}")
    if len(head) < frame.FILE_HEAD.size:
        raise _no_recording(f"{path} ends inside its first {frame.FILE_HEAD.size} bytes")
    major, minor = head[8], head[9]
    if major > frame.MAJOR:
        raise NewerRecording(
            f"{path} has format version {major}.{minor}",
            expected=f"at most {frame.MAJOR}.{frame.MINOR}, which this stageprof reads",
            do="upgrade stageprof",
        )
    return head


def _no_recording(seen: str) -> NotARecording:
    return NotARecording(seen, expected="a *.stageprof recording", do="check the path")
