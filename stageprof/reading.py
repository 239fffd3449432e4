"""Opening a recording on the command line: whatever the file holds, the answer is one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click
from dask.utils import parse_bytes

from stageprof.recording import Recording
from stageprof_runtime.errors import DamagedRecording, StageprofError, UsageError

#: Where a command keeps how much a recording may take, bytes; see `roomy`.
_ROOM: Final = "stageprof.max_memory"


def _allow(context: click.Context, _: click.Parameter, size: str | None) -> None:
    if size is None:
        return
    try:
        room = parse_bytes(size) if size.strip() else 0
    except (ValueError, OverflowError):
        room = 0
    if room <= 0:
        raise UsageError(f"--max-memory {size}", expected="a size such as 16GB")
    context.meta[_ROOM] = room


#: The option of commands that read a recording whole.
roomy: Final = click.option(
    "--max-memory", metavar="SIZE", expose_value=False, callback=_allow,
    help="What a recording may take, as 16GB; default by its size.",
)  # fmt: skip


def room() -> int | None:
    """How much the running command allows a recording, bytes; None: what suits its size."""
    context = click.get_current_context(silent=True)
    found: int | None = context.meta.get(_ROOM) if context is not None else None
    return found


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
def reading(path: str, allowed: int | None = None) -> Iterator[Recording]:
    """The recording at `path`; see `sensible`.

    Args:
        path: of the recording.
        allowed: how much it may take, bytes; None: what the running command allows.

    Raises:
        StageprofError: the file cannot be read, or its tables contradict each other.
    """
    with sensible(path):
        yield _opened(path, room() if allowed is None else allowed)


@contextmanager
def sensible(path: str) -> Iterator[None]:
    """A block that uses a recording: what it cannot make sense of is damage.

    Raises:
        DamagedRecording: as soon as that is so.
    """
    try:
        yield
    except (StageprofError, OSError):
        raise
    except Exception as error:  # a file may come from anybody and claim anything
        raise DamagedRecording(
            f"{path} cannot be made sense of ({type(error).__name__}: {error})",
            expected="tables that fit together",
            do=f"look at it with: stageprof inspect {path}; if stageprof wrote it, report it",
        ) from error


def _opened(path: str, allowed: int | None) -> Recording:
    recording = Recording.open(path, max_memory=allowed)
    if not recording.store.places:
        raise DamagedRecording(
            f"{path} holds no event ({recording.store.incomplete_reason or 'complete'})",
            expected="at least the first tenth of a second of a run",
            do="record again",
        )
    return recording
