"""The files of a flight recorder: a bounded row of segments, of which the oldest goes first.

Each segment can be read by itself. A disk that is full is a limit like any other: the oldest goes.
What cannot be written all the same is dropped and counted, and shows in the recording as a gap;
nothing here raises for a disk that is full or gone.
"""

from __future__ import annotations

import errno
import os
import time
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from stageprof_runtime.batch import together
from stageprof_runtime.descriptor import Descriptor
from stageprof_runtime.flight.basis import RUNS, STACKS, Basis
from stageprof_runtime.flight.record import ABOUT, BASIS, BATCHES, encode, encode_json, join

SUFFIX: Final = ".segment"
#: A segment is this part of what may be kept, in time and in bytes.
PARTS: Final = 8
#: Raw bytes of one record, or of one batch if it is larger; a crash loses at most one record.
RECORD: Final = 1 << 20
#: What a basis may take of the size: else something is left out.
SHARE: Final = 4
LEFT_OUT: Final = (), (STACKS,), (STACKS, RUNS)
#: Seconds after which a segment that could not be begun is tried again: to put a basis together
#: takes the scheduler's processor.
AGAIN_S: Final = 5.0
#: Why there is no room.
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class _Segment(NamedTuple):
    path: str
    #: of the monotonic clock, s
    ended: float
    nbytes: int


class Segments:
    """The segments in one folder; all calls come from one thread at a time.

    Args:
        folder: an empty folder.
        about: what each segment shall say of the scheduler.
        minutes: what was shipped in these is kept, and up to an eighth more.
        size: bytes that all files together may take; never exceeded.
    """

    def __init__(self, folder: str, about: dict[str, Any], minutes: float, size: int) -> None:
        self.folder = folder
        #: batches that could not be written, by reason
        self.dropped: Counter[str] = Counter()
        self._about = about
        #: what of the drops the latest segment says
        self._told: dict[str, int] = {}
        self._keep_s = minutes * 60
        self._size = size
        self._basis = Basis()
        self._done: deque[_Segment] = deque()
        #: what the basis of the current segment leaves out
        self._left_out: tuple[str, ...] = ()
        #: when to try to begin a segment again, and why it failed
        self._again, self._why = 0.0, OSError()
        self._file: Descriptor | None = None
        self._path = ""
        self._began = 0.0
        self._head = self._nbytes = self._number = 0

    @property
    def nbytes(self) -> int:
        """What the files take."""
        return sum(segment.nbytes for segment in self._done) + self._nbytes

    def write(self, batches: Iterable[bytes]) -> None:
        """Append batches as they were shipped."""
        for group in together(batches, min(RECORD, self._size // PARTS)):
            try:
                self._make_way()
                self._append(encode(BATCHES, join(group)))
            except OSError as error:
                self.dropped[f"disk: {error.strerror or error}"] += len(group)
            for batch in group:
                self._absorb(batch)

    def files(self) -> list[tuple[int, int]]:
        """All segments, oldest first, open for reading: descriptor and length now.

        They can be read to the end even if they are removed meanwhile.
        """
        try:
            if self._told != self.dropped:
                self._tell()
        except OSError:  # there is no room, not even for saying so
            pass
        found: list[tuple[int, int]] = []
        for path, nbytes in [*((s.path, s.nbytes) for s in self._done), (self._path, self._nbytes)]:
            try:
                if nbytes:
                    found.append((os.open(path, os.O_RDONLY | os.O_CLOEXEC), nbytes))
            except OSError:  # somebody else removed it
                continue
        return found

    def close(self) -> None:
        """Write no more; the files stay."""
        self._seal()

    # -- one segment after the other --------------------------------------------------------------

    @property
    def _fd(self) -> int:
        """Of the current segment; -1 if there is none, or the process has closed it."""
        return -1 if self._file is None else self._file.number

    def _make_way(self) -> None:
        """Let go of the segments that are too old, and begin a new one where it is time."""
        now = time.monotonic()
        while self._done and self._done[0].ended <= now - self._keep_s:
            self._forget()
        full = self._nbytes - self._head >= self._size // PARTS
        if self._fd < 0 or full or now - self._began >= self._keep_s / PARTS:
            self._seal()
            self._begin(now)

    def _begin(self, now: float) -> None:
        if now < self._again:
            raise OSError(*self._why.args)
        self._open(now)
        self._basis.turn()
        try:
            self._tell(self._start())
        except OSError as error:
            self._again, self._why = now + AGAIN_S, error
            self._discard()
            raise
        self._head = self._nbytes

    def _open(self, now: float) -> None:
        self._number += 1
        self._path = os.path.join(self.folder, f"{self._number:08}{SUFFIX}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = Descriptor(os.open(self._path, flags, 0o600))
        self._began, self._nbytes = now, 0

    def _start(self) -> bytes:
        """A basis that takes no more than its share, as far as something can be left out."""
        basis = b""
        for without in LEFT_OUT:
            batches = self._basis.batches(without)
            basis = b"".join(encode(BASIS, join(group)) for group in together(batches, RECORD))
            self._left_out = without or self._basis.lacking
            if len(basis) <= self._size // SHARE:
                break
        return basis

    def _tell(self, basis: bytes = b"") -> None:
        """Write what there is to say of the recorder now."""
        dropped = dict(self.dropped)
        facts = {"number": self._number, "dropped": dropped, "left_out": self._left_out}
        self._append(encode_json(ABOUT, {**self._about, **facts}) + basis)
        self._told = dropped

    def _append(self, data: bytes) -> None:
        if self._fd < 0 or self._nbytes + len(data) > self._size:  # whatever else is let go of
            raise OSError(f"more at once than {self._size:,} bytes")
        while self.nbytes + len(data) > self._size:
            self._forget()
        try:
            self._put(data)
        except OSError as error:
            if error.errno not in FULL or self._fd < 0 or not self._spares():
                raise
            self._forget()
            self._put(data)
        self._nbytes += len(data)

    def _spares(self) -> bool:
        """Whether something stays if the oldest goes: others may have filled the disk."""
        return len(self._done) > 1 or (bool(self._done) and self._nbytes > self._head)

    def _put(self, data: bytes) -> None:
        try:
            view = memoryview(data)
            while view:  # a full disk shows first as a short write
                view = view[os.write(self._fd, view) :]
        except OSError:
            self._trim()
            raise

    def _trim(self) -> None:
        """Take back the part of a record that still fitted."""
        try:
            os.ftruncate(self._fd, self._nbytes)
            os.lseek(self._fd, self._nbytes, os.SEEK_SET)
        except OSError:
            self._seal()  # a reader stops at the torn record

    def _seal(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
        except OSError:
            pass
        self._done.append(_Segment(self._path, time.monotonic(), self._nbytes))
        self._path, self._nbytes, self._head = "", 0, 0

    def _discard(self) -> None:
        """Take back a segment that could not be begun: a full disk would get one at each try."""
        self._seal()
        self._remove(self._done.pop())

    def _forget(self) -> None:
        self._remove(self._done.popleft())

    def _remove(self, segment: _Segment) -> None:
        try:
            os.unlink(segment.path)
        except OSError:  # somebody else removed it
            pass

    def _absorb(self, batch: bytes) -> None:
        try:
            self._basis.absorb(batch)
        except Exception as error:  # a batch of another version, say: it is kept all the same
            self.dropped[f"basis: {type(error).__name__}"] += 1
