"""The recordings that somebody names: files, globs, and folders for all in them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from stageprof_runtime.errors import NotARecording, UsageError

#: How the file of a recording ends.
SUFFIX = ".stageprof"


def chosen(words: Iterable[str | os.PathLike[str]], side: str) -> list[Path]:
    """The files that words name, each once, those of a folder by name.

    Args:
        words: files, patterns such as `runs/*.stageprof`, folders.
        side: what they are for, for the message.

    Raises:
        NotARecording: a word names no file, or a folder without recordings.
        UsageError: there is no word.
    """
    found = {os.path.realpath(path): path for word in words for path in _of(os.fspath(word), side)}
    if not found:
        raise UsageError(
            f"no recording for the {side}",
            expected="files, folders or globs on both sides",
            do="stageprof compare BASE... -- HEAD...",
        )
    return list(found.values())


def _of(word: str, side: str) -> Iterator[Path]:
    try:
        paths = _paths(word)
    except (OSError, ValueError) as error:  # a byte that no path has, a folder that is closed
        why = getattr(error, "strerror", "") or str(error)
        raise NotARecording(f"cannot read {word} ({why})", expected="a recording") from error
    if not paths:
        what = f"{word} holds no *{SUFFIX} file" if Path(word).is_dir() else f"no file {word}"
        raise NotARecording(f"{what} (for the {side})", expected="recordings", do="check the path")
    yield from paths


def _paths(word: str) -> list[Path]:
    path = Path(word)
    if path.is_dir():
        found = (p for p in path.iterdir() if p.name.endswith(SUFFIX) and p.is_file())
        return sorted(found, key=lambda p: _natural(p.name))
    if path.exists() or not glob.has_magic(word):
        return [path] if path.exists() else []
    words = sorted(glob.glob(word, recursive=True), key=_natural)  # noqa: PTH207 (as it was given)
    return [path for each in words for path in _paths(each)]


def _natural(name: str) -> list[str | int]:
    """What names are sorted by so that 10.stageprof comes after 9.stageprof."""
    words = re.split(r"([0-9]{1,18})", name)  # every second one is a number
    return [int(word) if i % 2 else word for i, word in enumerate(words)]
