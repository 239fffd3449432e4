"""Files that only their owner may read: keys, names and paths of the user's are in them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

FILE: Final = 0o600
FOLDER: Final = 0o700


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file; one that is there is replaced, and others lose their permissions on it.

    Raises:
        OSError, ValueError: it cannot be written.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        if stat.S_ISREG(os.fstat(fd).st_mode):  # not a terminal's or a pipe's
            os.fchmod(fd, FILE)
            os.ftruncate(fd, 0)
        file.write(text)


def make_folders(path: Path) -> None:
    """Make a folder and those above it that are not there yet; nobody else may look into them.

    Raises:
        OSError, ValueError: it cannot be made.
    """
    for each in (*reversed(path.parents), path):
        if not each.is_dir():
            each.mkdir(FOLDER, exist_ok=True)


def made_private(path: Path) -> None:
    """Take the permissions of others away from a file, or a folder and all that is in it."""
    if path.is_dir():
        for each in path.rglob("*"):
            each.chmod(FOLDER if each.is_dir() else FILE)
    path.chmod(FOLDER if path.is_dir() else FILE)


__all__ = ["FILE", "FOLDER", "made_private", "make_folders", "write_text"]
