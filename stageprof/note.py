"""The note beside a recording of a baseline: what is known of it without opening it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from stageprof.recording import Recording
from stageprof_collectors.comparison.circumstances import circumstances, instant, program

#: The form of a note, and its version.
SCHEMA: Final = "stageprof.baseline/1"
#: Characters of a branch's name; git takes fewer.
LONGEST: Final = 4096
#: Bytes of a note that are looked at.
_MOST: Final = 100_000


class Note(msgspec.Struct, frozen=True):
    """Hostile text, all of it."""

    schema: str
    branch: str
    #: what was recorded: a test's node id, or a program
    program: str
    machine: str
    versions: str
    #: when, as ISO 8601
    started: str
    wall_s: float

    @property
    def series(self) -> tuple[str, str, str, str]:
        """Recordings of one series can be compared, and are counted together."""
        return self.branch, self.machine, self.versions, self.program

    @property
    def began_s(self) -> float:
        """When it was recorded, seconds since 1970; 0 if that makes no sense."""
        return instant(self.started)


def noted(recording: Recording, branch: str) -> Note:
    """The note of a recording."""
    header, on = recording.store.header, circumstances(recording)
    return Note(
        schema=SCHEMA,
        branch=text(branch),
        program=text(program(header)),
        machine=text(on["machine"]),
        versions=text(on["versions"]),
        started=text(header.get("started")),
        wall_s=recording.wall,
    )


def text(value: object) -> str:
    """As text that JSON takes, at a length that a note has room for."""
    said = "" if value is None else str(value)
    return said.encode("utf-8", "backslashreplace").decode()[:LONGEST]


def read(path: Path) -> Note | None:
    """The note in a file; None if there is none, or one that is not ours."""
    try:
        with path.open("rb") as file:
            note = msgspec.json.decode(file.read(_MOST), type=Note)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return note if note.schema == SCHEMA else None
