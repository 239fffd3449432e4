"""Cells of a notebook, called what their user calls them: `In [3]:2`, no file that nobody has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Final, TypeVar

#: A cell's number and file, as in the label of its mark.
_LABEL: Final = re.compile(r"(\d{1,9}) (.{8,500})", re.DOTALL)
#: Characters in which files of cells are alike: few texts have them.
_BEGIN: Final = len("<ipython-input")
#: Cells of one recording, and ways in which their files begin and lengths of them: nobody has more,
#: and a text of a forged recording takes no longer for them.
_MOST: Final = 5_000
_ALIKE: Final = 16

T = TypeVar("T")


def rename(texts: list[str], labels: Iterable[str]) -> None:
    """Put the names of cells where the texts of a recording have their files.

    Args:
        texts: changed in place.
        labels: of the marks that name cells.
    """
    found = islice(filter(None, map(_LABEL.fullmatch, labels)), _MOST)
    names = {label[2]: f"In [{label[1]}]" for label in found}
    begins = _usual(file[:_BEGIN] for file in names)
    lengths = sorted(_usual(map(len, names)), reverse=True)
    for begin in begins:
        for i, text in enumerate(texts):
            if begin in text:
                texts[i] = _renamed(text, begin, lengths, names)


def _renamed(text: str, begin: str, lengths: list[int], names: dict[str, str]) -> str:
    parts, done, at = [], 0, text.find(begin)
    while at >= 0:
        file = next((f for n in lengths if (f := text[at : at + n]) in names), "")
        if file:
            parts += [text[done:at], names[file]]
            done = at + len(file)
        at = text.find(begin, at + len(file or begin))
    return "".join([*parts, text[done:]])


def _usual(values: Iterable[T]) -> list[T]:
    return [value for value, _ in Counter(values).most_common(_ALIKE)]


__all__ = ["rename"]
