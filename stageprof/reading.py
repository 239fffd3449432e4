"""Opening a recording on the command line: whatever the file holds, the answer is one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from stageprof.recording import Recording
from stageprof_runtime.errors import DamagedRecording, StageprofError


def beginning(path: str | os.PathLike[str], size: int) -> bytes | None:
    """The first bytes of a file; None if it is no file that can be read (a pipe would wait)."""
    try:
        if not os.path.isfile(path):  # noqa: PTH113 (a path may make no sense)
            return None
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(size)
    except (OSError, ValueError):
        return None


@contextmanager
def reading(path: str) -> Iterator[Recording]:
    """The recording at `path`; what cannot be made sense of while it is used is damage.

    Raises:
        StageprofError: the file cannot be read, or its tables contradict each other.
    """
    try:
        yield _opened(path)
    except (StageprofError, OSError):
        raise
    except Exception as error:  # a file may come from anybody and claim anything
        raise DamagedRecording(
            f"{path} cannot be made sense of ({type(error).__name__}: {error})",
            expected="tables that fit together",
            do=f"look at it with: stageprof inspect {path}; if stageprof wrote it, report it",
        ) from error


def _opened(path: str) -> Recording:
    recording = Recording.open(path)
    if not recording.store.places:
        raise DamagedRecording(
            f"{path} holds no event ({recording.store.incomplete_reason or 'complete'})",
            expected="at least the first tenth of a second of a run",
            do="record again",
        )
    return recording
