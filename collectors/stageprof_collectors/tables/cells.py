"""Cells of a notebook, called what their user calls them: `In [3]:2`, no file that nobody has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Final

#: A cell's number and file, as in the label of its mark.
_LABEL: Final = re.compile(r"(\d{1,9}) (.{8,500})", re.DOTALL)
#: Characters in which files of cells are alike: few texts have them.
_BEGIN: Final = len("<ipython-input")
#: Cells, and ways in which their files begin, of one recording: nobody has more.
_MOST: Final = 5_000
_ALIKE: Final = 8


def rename(texts: list[str], labels: Iterable[str]) -> None:
    """Put the names of cells where the texts of a recording have their files.

    Args:
        texts: changed in place.
        labels: of the marks that name cells.
    """
    found = islice(filter(None, map(_LABEL.fullmatch, labels)), _MOST)
    names = {label[2]: f"In [{label[1]}]" for label in found}
    if not names:
        return
    files = re.compile("|".join(map(re.escape, names)))
    begins = [begin for begin, _ in Counter(file[:_BEGIN] for file in names).most_common(_ALIKE)]
    for i, text in enumerate(texts):
        if any(begin in text for begin in begins):
            texts[i] = files.sub(lambda file: names[file[0]], text)


__all__ = ["rename"]
