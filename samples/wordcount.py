"""Which words do programmers write most? Counts words in the sources of Python itself.

Small reads the standard library; full reads the installed packages with it, texts included.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

import dask.bag as db

from program import Row, Settings, main

WORD = re.compile(r"[a-z]{3,}")
MOST = 40

#: Where the standard library's folder holds what is not of it.
INSTALLED = {"site-packages", "dist-packages"}

#: What to read, and how many files make a partition.
SUFFIXES = {"small": {".py"}, "full": {".py", ".txt", ".rst", ".md", ".pyi"}}
BATCH = {"small": 16, "full": 64}


def run(settings: Settings) -> list[Row]:
    """Rows of word and count, most frequent first."""
    lines = db.read_text(
        files(settings),
        files_per_partition=BATCH[settings.size],
        encoding="utf-8",
        errors="replace",  # some files are there to test other encodings
    )
    counts = lines.map(words).flatten().frequencies(split_every=8)
    # By word as well: words with the same count would come in any order.
    most = counts.topk(MOST, key=count_and_word).compute()
    return [(word, count) for word, count in most]


def words(line: str) -> list[str]:
    """The words of a line, in lower case."""
    return WORD.findall(line.lower())


def count_and_word(pair: tuple[str, int]) -> tuple[int, str]:
    """What words are ranked by."""
    return pair[1], pair[0]


def files(settings: Settings) -> list[str]:
    """The files to read, in an order that is the same everywhere."""
    found = texts(Path(sysconfig.get_path("stdlib")), SUFFIXES[settings.size])
    if settings.full:
        found |= texts(Path(sysconfig.get_path("purelib")), SUFFIXES[settings.size])
    return sorted(map(str, found))


def texts(folder: Path, suffixes: set[str]) -> set[Path]:
    """The files below a folder that end so, without packages installed inside of it."""
    found = {path for path in folder.rglob("*") if path.suffix in suffixes}
    return {p for p in found if not INSTALLED.intersection(p.relative_to(folder).parts)}


if __name__ == "__main__":
    sys.exit(main("wordcount", __doc__, run))
