"""A baseline: recordings kept by branch, machine and versions, for later ones to compare with.

A folder in which each recording has a note beside it, a small JSON file of the same name. What has
no note was not put there by us: it is neither listed nor removed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from stageprof.chosen import SUFFIX, chosen
from stageprof.note import LONGEST, Note, noted, read, text
from stageprof.pathname import path_name
from stageprof.private import make_folders, write_text
from stageprof.reading import reading
from stageprof_collectors.comparison.circumstances import failed
from stageprof_runtime.errors import DamagedRecording, UsageError

#: Names of files and folders that `save` gives: none that a shell or a terminal acts on.
_OURS: Final = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")
#: Recordings of other machines and versions that are compared with, the newest: those of long ago
#: had other counts, and what is above no count of years is hardly ever above the last one.
NEWEST: Final = 7
#: Hexadecimal digits of a recording's digest in its name.
_DIGITS: Final = 16


class Kept(NamedTuple):
    """A recording of the baseline."""

    note: Note
    path: Path


class Saved(NamedTuple):
    """Where a recording went; it was there already if it is not new."""

    kept: Kept
    new: bool


class Refused(NamedTuple):
    """A recording of a run that failed: nothing is to be compared with it."""

    path: Path
    #: in words, our own and the exception's name
    why: str


# -- save -----------------------------------------------------------------------------------------


def recordings(given: Iterable[str]) -> list[Path]:
    """The recordings that words name: files, globs, and folders with the folders in them.

    Raises:
        NotARecording: a word names none.
    """
    found: dict[Path, None] = {}
    for word in given:
        inside = sorted(Path(word).rglob(f"*{SUFFIX}")) if Path(word).is_dir() else []
        found |= dict.fromkeys(inside or chosen([word], "baseline"))
    return list(found)


def save(paths: Iterable[Path], folder: Path, branch: str) -> Iterator[Saved | Refused]:
    """Copy recordings into a baseline, which is made if it is not there; nothing is overwritten.

    Those of runs that failed are not copied: a test may be expected to.

    Raises:
        RecordingError: one cannot be read, or is incomplete.
        UsageError: the branch has no name, or the folder cannot be written.
    """
    if not branch or len(branch) > LONGEST:
        raise UsageError(f"a branch of {len(branch):,} characters", expected=f"1 to {LONGEST:,}")
    for path in paths:
        note, why = _described(path, branch)
        if why:
            yield Refused(path, why)
            continue
        try:
            yield _kept(path, folder, note)
        except (OSError, ValueError) as error:  # there is a byte in it that no path has
            raise UsageError(
                f"{path} cannot be kept in {folder} ({getattr(error, 'strerror', '') or error})",
                expected="a folder that can be written",
            ) from error


def described(path: Path, branch: str = "") -> Note:
    """What would be noted of a recording.

    Raises:
        RecordingError: it cannot be read, or is incomplete.
    """
    return _described(path, branch)[0]


def _described(path: Path, branch: str) -> tuple[Note, str]:
    """The note of a recording; and how its run failed, if it did."""
    with reading(str(path)) as recording:
        if not recording.complete:
            raise DamagedRecording(
                f"{path} is incomplete ({recording.store.incomplete_reason})",
                expected="a whole recording to compare with",
                do="record again",
            )
        return noted(recording, branch), failed(recording)


def _kept(source: Path, folder: Path, note: Note) -> Saved:
    place = folder.joinpath(*map(path_name, note.series))
    make_folders(place)
    # Process ids are small and alike in containers, which may share the folder.
    fd, name = tempfile.mkstemp(".part", ".", place)
    os.close(fd)
    part = Path(name)
    try:
        shutil.copyfile(source, part)
        when = re.sub(r"\D", "", note.started)[:14]
        path = place / f"{when}-{_digest(part)}{SUFFIX}".lstrip("-")
        new = _moved(part, path)
        part.unlink(missing_ok=True)
        write_text(part, msgspec.json.encode(note).decode())
        _moved(part, path.with_suffix(".json"))
    finally:
        part.unlink(missing_ok=True)
    return Saved(Kept(note, path), new)


def _moved(part: Path, target: Path) -> bool:
    """Give a whole file its name; False if that name is taken, which a link never overwrites."""
    try:
        os.link(part, target)
    except OSError:  # it is there; or the file system has no links
        if os.path.lexists(target):
            return False
        part.rename(target)
    else:
        part.unlink()  # what is written to it next must not be written to both
    return True


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:_DIGITS]


# -- list and prune ---------------------------------------------------------------------------


def kept(folder: Path, branch: str | None = None) -> list[Kept]:
    """The recordings of a baseline by their series, the newest of each last.

    Raises:
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(
            f"no folder {folder}",
            expected="a baseline",
            do="save one with: stageprof baseline save FILE... --dir DIR",
        )
    wanted = None if branch is None else text(branch)
    found = [each for each in _noted(folder) if wanted in (None, each.note.branch)]
    return sorted(found, key=lambda each: (each.note.series, *_age(each)))


def _noted(folder: Path) -> Iterator[Kept]:
    """Those that lie where `save` puts them; a cache may hold other files, of any name."""
    for place, _, names in os.walk(folder):  # which follows no links
        if not all(map(_OURS.fullmatch, Path(place).relative_to(folder).parts)):
            continue
        for name in names:
            path = Path(place, name)
            if path.suffix != SUFFIX or path.is_symlink() or not _OURS.fullmatch(name):
                continue
            note = read(path.with_suffix(".json"))
            if note is not None:
                yield Kept(note, path)


def like(found: list[Kept], other: Note) -> tuple[list[Kept], str]:
    """Those of the program that was recorded, and on what they differ from it, if they do.

    Of the same machine and versions, if there are any; else the newest few of all.
    """
    same = [each for each in found if each.note.program == other.program]
    alike = [e for e in same if e.note.series[1:3] == other.series[1:3]]
    if alike or not same:
        return alike, ""
    said = "none is of this machine and these versions; the newest of others are named"
    return newest(same), said


def newest(found: list[Kept], number: int = NEWEST) -> list[Kept]:
    """The newest few, in the order in which they were."""
    late = {each.path for each in sorted(found, key=_age)[-number:]}
    return [each for each in found if each.path in late]


def _age(each: Kept) -> tuple[float, str]:
    return each.note.began_s, each.path.name


def surplus(found: Iterable[Kept], keep: int, *, together: bool = False) -> list[Kept]:
    """All but the newest few of each series, or of each branch and program.

    Args:
        found: recordings of a baseline.
        keep: how many stay of each.
        together: count those of all machines and versions together.
    """
    series: defaultdict[tuple[str, ...], list[Kept]] = defaultdict(list)
    for each in sorted(found, key=_age):
        note = each.note
        series[(note.branch, note.program) if together else note.series].append(each)
    return [each for of_one in series.values() for each in of_one[: max(len(of_one) - keep, 0)]]


def removed(each: Kept, folder: Path) -> bool:
    """Remove a recording, its note and folders that are empty then; False if not ours, or gone.

    Raises:
        UsageError: it cannot be removed.
    """
    try:
        if not each.path.stem.endswith(_digest(each.path)):  # somebody put another file there
            return False
        each.path.unlink()
        each.path.with_suffix(".json").unlink(missing_ok=True)
    except FileNotFoundError:  # another job removes what it has too many of
        return False
    except OSError as error:
        raise UsageError(f"{each.path} cannot be removed ({error.strerror or error})") from error
    for place in each.path.parents:
        if place == folder:
            break
        with suppress(OSError):  # something else is in it
            place.rmdir()
    return True
