"""Where an export goes: never over something that is there, unless the user insists.

Only its owner may read it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from stageprof.private import made_private
from stageprof.reading import beginning
from stageprof.recording import Recording
from stageprof.schema import COLUMNS, MANIFEST
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
    with placed(target, [recording.path], force=force) as part:
        form.write(recording, part)


@contextmanager
def placed(target: Path, sources: Sequence[str | None], *, force: bool) -> Iterator[Path]:
    """Where to write; what is there when the block has ended becomes `target`.

    Args:
        target: a file or folder.
        sources: the recordings that are read meanwhile, which are not replaced.
        force: replace an export that is there.

    Raises:
        NotExported: something is there already, or the place cannot be written.
    """
    target = target.absolute()  # the name of "." is that of the folder
    folder = None
    try:
        if "\0" in str(target):
            raise _not_written(target, "there is a byte in it that no path has")
        _check_free(target, sources, force=force)
        # Nobody else sees what is in it until it is whole.
        folder = Path(tempfile.mkdtemp(".part", f".{target.name[:100]}.", target.parent))
        part = folder / target.name
        yield part
        made_private(part)
        _remove(target)
        part.rename(target)
    except OSError as error:
        raise _not_written(target, error.strerror or str(error)) from error
    finally:
        with suppress(OSError):
            if folder is not None:
                _remove(folder)


def _not_written(target: Path, why: str) -> NotExported:
    return NotExported(f"cannot write {target} ({why})", do="choose another with -o")


def _check_free(target: Path, sources: Sequence[str | None], *, force: bool) -> None:
    if not os.path.lexists(target):
        return
    if target.exists() and not (target.is_file() or target.is_dir()):  # /dev/null, a pipe
        raise NotExported(f"{target} is neither a file nor a folder", do="choose another with -o")
    if not force:
        raise NotExported(
            f"{target} exists", expected="a new name", do="choose one with -o, or use --force"
        )
    if not _replaceable(target, sources):
        raise NotExported(
            f"{target} holds other things than an export", do="choose another with -o"
        )


def _replaceable(target: Path, sources: Sequence[str | None]) -> bool:
    """`--force` must neither empty a home folder nor replace a recording that is read."""
    if target.is_dir() and not target.is_symlink():
        names = {path.name for path in target.iterdir()}
        tables = {f"{name}{end}" for name in COLUMNS for end in (".csv", ".parquet")}
        return names <= tables or (MANIFEST in names and names <= {MANIFEST, *COLUMNS})
    return not any(source is not None and _same(target, source) for source in sources)


def _same(target: Path, source: str) -> bool:
    try:
        return target.samefile(source)
    except FileNotFoundError:  # what was read has been moved since
        return False


def is_page(path: str | os.PathLike[str]) -> bool:
    """Whether a report that is there may be replaced: a file of HTML, or an empty one."""
    begin = beginning(path, 1000)
    html = (b"<!doctype html", b"<html")
    return begin is not None and (not begin.strip() or begin.lstrip().lower().startswith(html))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
