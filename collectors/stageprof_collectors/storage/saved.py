"""A recording in memory saved to a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from stageprof_collectors.storage.file import Writer
from stageprof_runtime.errors import RecordingNotWritable


def save(
    path: str | os.PathLike[str],
    header: dict[str, Any],
    batches: list[bytes],
    *,
    whole: bool = True,
) -> None:
    """Write a recording to a file that is not there yet.

    Args:
        path: the file.
        header: as for `Writer`.
        batches: what it shall hold.
        whole: whether that is all there was; else the file says that something is missing.

    Raises:
        RecordingNotWritable: it cannot be written there, or a file is there.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except (OSError, ValueError) as error:
        raise RecordingNotWritable(
            f"cannot save to {path} ({getattr(error, 'strerror', None) or error})",
            expected="a name that no file has yet, in a folder that you may write to",
            do="choose another name",
        ) from error
    failed = _written(path, header, batches, whole=whole)
    if failed:
        Path(path).unlink(missing_ok=True)
        raise RecordingNotWritable(
            f"{path} could not be written ({failed})",
            expected="room for the recording",
            do="free some space, and save again",
        )


def _written(
    path: str | os.PathLike[str], header: dict[str, Any], batches: list[bytes], *, whole: bool
) -> str:
    """Why it could not be written; "" if it was."""
    try:
        with Writer(path, header) as writer:
            writer.write(*batches)
            if not whole and not writer.failed:
                writer.abandon()
    except RecordingNotWritable as error:  # there is no room for its header
        return str(error)
    return writer.failed
