"""Which words do programmers write most? Counts words and names in the sources of Python.

Small reads the modules of the standard library; full reads all of it, its tests and the installed
packages too, texts included.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import dask.bag as db
from dask.base import compute

from program import Row, Settings, main

#: Words, names of classes and names of constants.
KINDS = (r"\b[a-z]{3,}\b", r"\b(?:[A-Z][a-z]+){2,}\b", r"\b[A-Z]+(?:_[A-Z]+)+\b")
MOST = 40

#: Where the standard library's folder holds what is not of it.
INSTALLED = {"site-packages", "dist-packages"}

#: Where to look in a folder, what to read, and how many files make a partition.
PLACES = {"small": "*", "full": "**/*"}
SUFFIXES = {
    "small": {".py"},
    "full": {".h", ".html", ".json", ".md", ".pxd", ".py", ".pyi", ".pyx", ".rst", ".txt"},
}
BATCH = {"small": 32, "full": 64}


def run(settings: Settings) -> list[Row]:
    """Rows of word and count: the most frequent of each kind."""
    lines = db.read_text(
        files(settings),
        files_per_partition=BATCH[settings.size],
        encoding="utf-8",
        errors="replace",  # some files are there to test other encodings
    )
    counted: tuple[list[Row], ...] = compute(*(most(lines, re.compile(kind)) for kind in KINDS))
    return [row for rows in counted for row in rows]


def most(lines: db.Bag, pattern: re.Pattern[str]) -> db.Bag:
    """The most frequent matches in the lines, each with its count."""
    counts = lines.map(pattern.findall).flatten().frequencies(split_every=8)
    # By word as well: words with the same count would come in any order.
    ranked: db.Bag = counts.topk(MOST, key=count_and_word)
    return ranked


def count_and_word(pair: tuple[str, int]) -> tuple[int, str]:
    """What words are ranked by."""
    return pair[1], pair[0]


def files(settings: Settings) -> list[str]:
    """The files to read, in an order that is the same everywhere."""
    names = ["stdlib", "purelib"] if settings.full else ["stdlib"]
    folders = [Path(sysconfig.get_path(name)) for name in names]
    return sorted({str(path) for folder in folders for path in texts(folder, settings.size)})


def texts(folder: Path, size: str) -> Iterator[Path]:
    """The files of a folder that are to be read."""
    for path in folder.glob(PLACES[size]):
        installed = INSTALLED.intersection(path.relative_to(folder).parts)
        if path.suffix in SUFFIXES[size] and not installed:
            yield path


if __name__ == "__main__":
    sys.exit(main("wordcount", __doc__, run))
