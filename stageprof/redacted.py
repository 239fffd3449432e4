"""Recordings to hand to somebody: copies without the user's names, for commands to work on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from stageprof.export.target import Format
from stageprof.recording import Recording

#: The option of commands that write something to hand on.
redaction: Final = click.option(
    "--redact", is_flag=True, help="Replace your names and paths; docs/privacy.md."
)


@contextmanager
def redacted(files: Sequence[str], *, wanted: bool) -> Iterator[list[str]]:
    """Redacted copies of recordings, which are gone afterwards; the files themselves if not wanted.

    Raises:
        RecordingError: a file cannot be read, or there is no room for the copy.
    """
    if not wanted:
        yield list(files)
        return
    from stageprof_collectors.privacy.redaction import redact

    with tempfile.TemporaryDirectory(prefix="stageprof-") as folder:
        copies = [f"{folder}/redacted-{number}.stageprof" for number in range(1, len(files) + 1)]
        for file, copy in zip(files, copies, strict=True):
            redact(file, copy)
        yield copies


def _copied(recording: Recording, path: Path) -> None:
    """Write the recording itself; it came from a file."""
    shutil.copyfile(recording.path or "", path)


#: What `stageprof export --redact` writes where no format is named.
REDACTED: Final = Format(_copied, "-redacted.stageprof")

__all__ = ["REDACTED", "redacted", "redaction"]
