"""A flight recorder's segments, made into a recording like any other.

The oldest segment that is there says what had been told before it; everything is counted from
there: batches, what was dropped, and what stageprof cost.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from stageprof_collectors.storage.file import Writer
from stageprof_collectors.storage.frame import MAX_JSON
from stageprof_collectors.storage.frames import GROWTH, LEAST_MEMORY
from stageprof_collectors.storage.merge import merge
from stageprof_collectors.storage.origin import Origin
from stageprof_collectors.storage.start import Packed, Start, place_of
from stageprof_collectors.storage.store import BATCH_BYTES
from stageprof_runtime.errors import DamagedRecording, NotARecording, RecordingNotWritable
from stageprof_runtime.event import Place
from stageprof_runtime.flight import record as layout
from stageprof_runtime.flight.basis import RUNS, STACKS
from stageprof_runtime.flight.folder import CURRENT
from stageprof_runtime.flight.record import ABOUT, BASIS, BATCHES, Record
from stageprof_runtime.flight.segments import SUFFIX

#: Raw bytes of the batches that are put together at once.
LOT: Final = 32 << 20
#: Places that are told apart; each takes some kilobytes.
PLACES: Final = 50_000

_decode = msgspec.msgpack.decode
#: What a recorder says of its machine that a recording's header holds.
_ABOUT: Final = (
    "stageprof", "dask", "distributed", "python", "platform", "machine", "cpus", "program",
)  # fmt: skip
#: Characters of what it says.
_LONGEST: Final = 200
#: The year 2100 in ms, for what anybody may have written.
_LATEST: Final = 4_102_444_800_000
_ERRORS: Final = (
    msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError, OverflowError
)  # fmt: skip


@dataclass
class Window:
    """What of a cluster's life a flight recording covers; times as ISO texts."""

    address: str = ""
    began: str = ""
    until: str = ""
    seconds: float = 0.0
    #: what was asked of the recorder
    minutes: float = 0.0
    size: int = 0
    #: whether there was something before, which is overwritten
    overwritten: bool = False
    #: batches that the recorder could not keep since the cluster began, by reason
    dropped: dict[str, int] = field(default_factory=dict)
    #: whether there was no room for all that was known before it began: of the places in stacks,
    #: and of the tasks that were running
    without_stacks: bool = False
    without_runs: bool = False

    @property
    def cut(self) -> bool:
        """Whether the limit in bytes left less than the minutes asked for."""
        return self.overwritten and self.seconds < 60 * self.minutes


def assemble(
    folder: str | os.PathLike[str], path: str | os.PathLike[str], dropped: object = None
) -> Window:
    """Write the recording at `path` that the segments in a folder hold.

    Args:
        folder: of segments; or one that a recorder was given, whose latest are taken.
        path: the recording; one that is there is replaced.
        dropped: what the recorder says that it could not keep, for there may have been no room to
            write that; None: what the segments say.

    Raises:
        NotARecording: there is no segment.
        DamagedRecording: there is more in them than in those of a recorder; `path` has what was
            before, and is unfinished.
        RecordingNotWritable: `path` cannot be written, or there is no room.
    """
    reel = Reel(_segments(Path(folder)), dropped)
    if not reel.records:
        raise _nothing(folder, f"*{SUFFIX} files in which nothing can be read")
    with Writer(path, reel.header) as writer:
        origins: dict[Place, Origin] = {}
        for lot in _lots(reel):
            writer.write(*merge(lot, origins))
    if writer.failed:
        raise RecordingNotWritable(
            f"{path} could not be written to the end ({writer.failed})",
            expected="room for the recording",
            do="free some space, and dump again",
        )
    return reel.window


def _segments(folder: Path) -> list[Path]:
    """In the order in which they were written."""
    for place in (folder / CURRENT, folder):
        found = sorted(place.glob(f"*{SUFFIX}")) if place.is_dir() else []
        if found:
            return found
    raise _nothing(folder, "no flight recording")


def _nothing(folder: str | os.PathLike[str], what: str) -> NotARecording:
    return NotARecording(
        f"{os.fspath(folder)} holds {what}",
        expected=f"*{SUFFIX} files, as a recorder with --stageprof-dir leaves them",
        do="name the folder that was given to it",
    )


class Reel:
    """The segments one after the other: iterating gives their batches, counted from the first."""

    def __init__(self, paths: list[Path], dropped: object = None) -> None:
        self._paths = paths
        self._dropped = dropped
        self._starts: dict[Place, Start | None] = {}
        #: how many can be read
        self.records = 0
        self.window = self._seen()

    @property
    def header(self) -> dict[str, Any]:
        """What the recording's header shall hold."""
        window = self.window
        label = f"Flight recording {_span(window)} of {window.address}"
        return {
            **{name: _said(self._about.get(name)) for name in _ABOUT},
            "label": label,
            "started": window.began,
            "flight": asdict(window),
        }

    def _seen(self) -> Window:
        """One pass over all records, which are many megabytes, without keeping them."""
        first = last = 0
        self._about: dict[str, Any] = {}
        latest: dict[str, Any] = {}
        for record in self._records():
            if record.kind == ABOUT and len(record.raw) <= MAX_JSON:
                latest = layout.decode_json(record.raw)
                self._about = self._about or latest
            first, last = first or record.written, max(last, record.written)
            self.records += 1
        about, first, last = self._about, min(first, _LATEST), min(last, _LATEST)
        without = _texts(about.get("left_out"))
        return Window(
            str(about.get("address", ""))[:_LONGEST], _moment(first), _moment(last),
            (last - first) / 1e3, _number(about.get("minutes")),
            int(_number(about.get("size"))), _number(about.get("number")) > 1,
            _counts(latest.get("dropped") if self._dropped is None else self._dropped),
            STACKS in without, RUNS in without,
        )  # fmt: skip

    def _records(self) -> Iterator[Record]:
        self._spared = LEAST_MEMORY
        for path in self._paths:
            try:
                with path.open("rb") as file:
                    self._spared += GROWTH * os.fstat(file.fileno()).st_size
                    for record in layout.records(file):
                        self._take(len(record.raw))
                        yield record
            except FileNotFoundError:  # it was overwritten just now
                continue

    def _split(self, record: Record) -> Iterator[bytes]:
        for batch in layout.split(record.raw):
            self._take(BATCH_BYTES)
            yield batch

    def _take(self, nbytes: int) -> None:
        """What is read counts: some kilobytes may claim millions of batches, or a thousandfold."""
        self._spared -= nbytes
        if self._spared < 0 or len(self._starts) > PLACES:
            raise DamagedRecording(
                f"{self._paths[0].parent} holds more than segments of their size may",
                expected=f"*{SUFFIX} files as a recorder leaves them",
                do="leave out those that are not a recorder's",
            )

    def __iter__(self) -> Iterator[bytes]:
        based = False
        for record in self._records():
            if record.kind == BASIS and not based:
                for batch in self._split(record):
                    yield from self._begun(batch)
            elif record.kind == BATCHES:
                based = True
                for batch in self._split(record):
                    yield from self._counted(batch)

    def _begun(self, batch: bytes) -> Iterator[bytes]:
        """What a place had told before, as its first batch."""
        try:
            raw = _decode(batch, type=Packed)
            start = Start(raw)
            found = start.first(raw)
            self._starts[place_of(raw)] = start
        except _ERRORS:
            return
        yield found

    def _counted(self, batch: bytes) -> Iterator[bytes]:
        """A batch with all that is counted from the beginning of its place counted from there."""
        try:
            raw = _decode(batch, type=Packed)
            start = self._starts.setdefault(place_of(raw), None)
            found = batch if start is None else start.since(raw)
        except _ERRORS:
            return
        if found:
            yield found


def _lots(batches: Iterable[bytes]) -> Iterator[list[bytes]]:
    """As many batches as memory is spared for."""
    lot: list[bytes] = []
    size = 0
    for batch in batches:
        lot.append(batch)
        size += len(batch) + BATCH_BYTES
        if size >= LOT:
            yield lot
            lot, size = [], 0
    if lot:
        yield lot


def _span(window: Window) -> str:
    """`2026-11-21 20:55:13 to 21:05:13`, or with both days."""
    began, until = (datetime.fromisoformat(text) for text in (window.began, window.until))
    end = f"{until:%H:%M:%S}" if began.date() == until.date() else f"{until:%Y-%m-%d %H:%M:%S}"
    return f"{began:%Y-%m-%d %H:%M:%S} to {end}"


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000).astimezone().isoformat()


def _number(value: object) -> float:
    sound = isinstance(value, int | float) and 0 <= value < _LATEST
    return value if sound and isinstance(value, int | float) else 0


def _said(value: object) -> str | int:
    """What a header may hold: a number that is none, say, is none of JSON's."""
    return value[:_LONGEST] if isinstance(value, str) else value if isinstance(value, int) else ""


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _counts(value: object) -> dict[str, int]:
    found = value.items() if isinstance(value, dict) else ()
    return {str(why)[:_LONGEST]: int(_number(n)) for why, n in found}
