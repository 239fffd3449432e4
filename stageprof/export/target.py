"""Where an export goes: never over something that is there, unless the user insists."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from stageprof.recording import Recording
from stageprof_runtime.errors import UsageError


class Format(NamedTuple):
    """A format: what writes it, and how the default name of its output ends."""

    write: Callable[[Recording, Path], None]
    suffix: str


class NotExported(UsageError):
    """The export cannot be written there."""


def exported(form: Format, recording: Recording, target: Path, *, force: bool) -> None:
    """Write a recording to a file or folder that appears once it is whole.

    Raises:
        NotExported: something is there already, or the place cannot be written.
    """
    target = target.absolute()  # the name of "." is that of the folder
    part = target.parent / f".{target.name}.{os.getpid()}.part"
    try:
        _check_free(target, recording, force=force)
        form.write(recording, part)
        _remove(target)
        part.rename(target)
    except (OSError, ValueError) as error:  # there is a byte in it that no path has
        why = getattr(error, "strerror", "") or str(error)
        raise NotExported(f"cannot write {target} ({why})", do="choose another with -o") from error
    finally:
        with suppress(OSError, ValueError):  # it cannot be there, then
            _remove(part)


def _check_free(target: Path, recording: Recording, *, force: bool) -> None:
    if not os.path.lexists(target):
        return
    if not force:
        raise NotExported(
            f"{target} exists", expected="a new name", do="choose one with -o, or use --force"
        )
    if not _replaceable(target, recording):
        raise NotExported(
            f"{target} holds other things than an export", do="choose another with -o"
        )


def _replaceable(target: Path, recording: Recording) -> bool:
    """`--force` must neither empty a home folder nor replace the recording itself."""
    if target.is_dir() and not target.is_symlink():
        return all(path.suffix in (".csv", ".parquet") for path in target.iterdir())
    return recording.path is None or not target.samefile(recording.path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
