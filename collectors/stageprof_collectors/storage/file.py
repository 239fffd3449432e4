"""Writing a `*.stageprof` file; `frame` documents its layout, `frames` reads it back.

What `Writer.write` has acknowledged survives the death of the process.
"""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from stageprof_collectors.storage import frame
from stageprof_collectors.storage.frame import BATCH, END, META
from stageprof_collectors.storage.frames import MAX_MEMORY, Frames, read_frames
from stageprof_runtime.batch import together
from stageprof_runtime.descriptor import Descriptor
from stageprof_runtime.errors import RecordingNotWritable

try:
    import fcntl
except ImportError:  # Windows, where nothing keeps two from writing to one file
    fcntl = None  # type: ignore[assignment]

__all__ = ["MAX_MEMORY", "Frames", "Writer", "lasting", "read_frames"]

#: Batches written together share a frame up to this size, bytes; a crash loses at most a frame.
_GROUP: Final = 4 << 20

#: What has failed where the program closes all files that are open, as daemons do.
_CLOSED: Final = "the program has closed its file"


class Writer:
    """Appends batches to a new recording; after construction it never raises.

    Every batch is with the operating system before `write` returns. When the disk is full (or
    anything else goes wrong) recording stops, `failed` says why, and the program goes on. Safe to
    call from several threads; in a forked child it does nothing.

    Args:
        path: the file; an existing recording there is replaced, anything else is refused, and so
            is one that somebody is writing.
        header: what the META frame shall hold; values that JSON lacks are stored as text.

    Raises:
        RecordingNotWritable: the file cannot be created, or not even its header fits.
        ValueError: a number of the header is none.
    """

    def __init__(self, path: str | os.PathLike[str], header: dict[str, Any]) -> None:
        meta = frame.encode_json(header)  # before there is a file: it may hold what JSON lacks
        self.path = Path(path)
        #: why recording stopped, or "" while all is well
        self.failed = ""
        #: frames, batches and bytes written; batches refused because no frame can hold them
        self.frames = self.batches = self.bytes = self.refused = 0
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._file = Descriptor(_create(self.path))
        self._closed = False
        self._begin(meta)

    def _begin(self, meta: bytes) -> None:
        self._head = frame.file_head(meta)
        self._append(self._head + frame.encode(self._head, 0, META, meta))
        if self.failed:
            self._release()
            raise RecordingNotWritable(
                f"{self.path} took no header ({self.failed})",
                expected="room for a recording",
                do="free some space or record to another disk",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it; of what was broken off nothing says that it is whole."""
        if kind is None:
            self.close()
        else:
            self.abandon()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def write(self, *batches: bytes) -> bool:
        """Append batches, in as few frames as the limits allow; several at once take less room.

        Returns:
            Whether all of them are with the operating system now.
        """
        with self._lock:
            before = self.refused
            for group in together(batches, _GROUP):
                self._write_group(group)
            return self._usable() and self.refused == before

    def close(self, totals: dict[str, Any] | None = None) -> bool:
        """Append the END frame and close the file; a second call does nothing.

        Args:
            totals: added to the counts that the END frame holds anyway.

        Returns:
            Whether the recording is complete.
        """
        with self._lock:
            if self._usable():
                counts = {"frames": self.frames, "batches": self.batches, "refused": self.refused}
                self._put(END, frame.encode_json({**(totals or {}), **counts}))
            done = self._usable()
            self._release()
            return done and not self.failed

    def fail(self, why: str) -> None:
        """Write no more: something that should have been cannot be; "" if all is well."""
        with self._lock:
            self.failed = self.failed or why

    def abandon(self) -> None:
        """Close the file without an END frame: there was more than it holds."""
        with self._lock:
            self._release()

    def _usable(self) -> bool:
        return not self._closed and not self.failed and os.getpid() == self._pid

    def _release(self) -> None:
        self._closed = True
        fd = self._file.number
        if fd >= 0 and os.getpid() == self._pid:
            _lock(fd, "LOCK_UN")  # a forked child may keep the file open
        try:
            self._file.close()
        except OSError as error:  # a network file system may report a lost write only here
            self.failed = self.failed or str(error)

    def _write_group(self, group: list[bytes]) -> None:
        if not self._usable():
            return
        try:
            self._put(BATCH, frame.join(group))
        except ValueError:
            self._write_apart(group)
        else:
            self.batches += 0 if self.failed else len(group)

    def _write_apart(self, group: list[bytes]) -> None:
        if len(group) == 1:
            self.refused += 1
        else:
            for batch in group:
                self._write_group([batch])

    def _put(self, kind: int, raw: bytes) -> None:
        self._append(frame.encode(self._head, self.frames, kind, raw))

    def _append(self, data: bytes) -> None:
        fd = self._file.number
        if fd < 0:
            self.failed = _CLOSED
            return
        try:
            _write_all(fd, data)
        except OSError as error:
            self.failed = error.strerror or str(error)
            self._trim()
        else:
            self.frames += 1
            self.bytes += len(data)

    def _trim(self) -> None:
        """Take back the part of a frame that still fitted, so that the file ends with a whole."""
        try:
            os.ftruncate(self._file.number, self.bytes)
        except OSError:
            pass  # a device, say; a reader stops at the torn frame anyway


def _write_all(fd: int, data: bytes) -> None:
    """Write all of it: a full disk shows first as a short write without an error."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def way_out(failed: str) -> str:
    """What whoever records can do where a `Writer` has failed so."""
    if failed == _CLOSED:
        return "Record it from another process (`stageprof attach`), which it leaves alone"
    return "Free some space or record elsewhere"


def _create(path: Path) -> int:
    try:
        # O_NONBLOCK: opening a FIFO that nobody reads must fail instead of waiting for ever
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except (OSError, ValueError) as error:  # there is a byte in it that no path has
        raise _not_writable(path, getattr(error, "strerror", "") or str(error)) from error
    try:
        _clear(fd, path)
    except BaseException as error:
        os.close(fd)
        if isinstance(error, OSError):
            raise _not_writable(path, error.strerror or str(error)) from error
        raise
    return fd


def _clear(fd: int, path: Path) -> None:
    """Empty an older recording; leave anything else alone (`-o script.py` is soon typed)."""
    status = os.fstat(fd)
    if stat.S_ISCHR(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        raise _not_writable(path, "not a regular file")
    if not _lock(fd, "LOCK_EX"):
        raise _not_writable(path, "another recording is being written there")
    if status.st_size and os.pread(fd, len(frame.MAGIC), 0) != frame.MAGIC:
        raise _not_writable(path, "it exists and is not a recording")
    os.fchmod(fd, 0o600)  # before: one that is somebody else's may be written to, but not so
    os.ftruncate(fd, 0)


def _lock(fd: int, how: str) -> bool:
    """Lock a file or let go of it; False if somebody else has it. Not all file systems can."""
    if fcntl is not None:
        try:
            fcntl.flock(fd, getattr(fcntl, how) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
    return True


def _not_writable(path: Path, why: str) -> RecordingNotWritable:
    return RecordingNotWritable(
        f"cannot record to {path} ({why})",
        expected="a new file, or a recording to replace, in a folder that you may write to",
        do="choose another path",
    )


def lasting(path: str | os.PathLike[str]) -> str:
    """The same path wherever the program goes meanwhile."""
    try:
        return os.path.abspath(path)  # noqa: PTH100 (no path of `pathlib` yet: it may make no sense)
    except OSError:  # the folder that we are in is gone
        return os.fspath(path)
